// Answers to the latest question of a place.

/** Return a function that awaits an answer and shows it, unless a later one was awaited by then; nor is a failure thrown then. */
export function latestOnly() {
  let nAwaited = 0;
  return async (answer, show) => {
    nAwaited += 1;
    const own = nAwaited;
    const isLatest = () => own === nAwaited;
    try {
      const shown = await answer;
      if (isLatest()) show(shown);
    } catch (error) {
      if (isLatest()) throw error;
    }
  };
}
