/** The work, done when its result is first asked for, and once. */
export function memoize<T>(work: () => T): () => T {
  let known: { result: T } | undefined;
  return () => (known ??= { result: work() }).result;
}
