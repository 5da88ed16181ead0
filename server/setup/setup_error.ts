/** Setting the installation up cannot go on: one sentence or two for the operator. Nothing was changed. */
export class SetupError extends Error {}
