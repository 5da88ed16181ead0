/** The work, done when its result is first asked for, and once. */
export function memoize<T>(work: () => T): () => T {
  let done: { result: T } | undefined;
  return () => (done ??= { result: work() }).result;
}
