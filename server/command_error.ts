/** What the operator asked for can't be done: one line, exit code 1. */
export class CommandError extends Error {}
