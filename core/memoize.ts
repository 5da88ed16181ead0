/** Computes the result on first use, and once. */
export function memoize<T>(work: () => T): () => T {
  let known: { result: T } | undefined;
  return () => (known ??= { result: work() }).result;
}
