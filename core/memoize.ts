/** The work, done when its result is first asked for, and once. `done` tells whether it was. */
export function memoize<T>(work: () => T): (() => T) & { readonly done: boolean } {
  let known: { result: T } | undefined;
  const ask = (): T => (known ??= { result: work() }).result;
  return Object.defineProperty(ask, 'done', { get: () => known !== undefined }) as typeof ask & { readonly done: boolean };
}
