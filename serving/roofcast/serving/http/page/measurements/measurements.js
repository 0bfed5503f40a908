export const start = async () => {};
export const load = start;
