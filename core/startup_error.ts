/** Why the program cannot start: one line for the operator. The entry points print it and exit with code 1. */
export class StartupError extends Error {}
