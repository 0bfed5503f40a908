"""The analytic model of a serving engine: operators, messages, memory and the batching loop."""
