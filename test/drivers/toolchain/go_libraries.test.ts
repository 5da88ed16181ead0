// The library of Go that several deployments wait for: none of them ends it for the others.
import { openGoLibraries } from '../../../drivers/toolchain/go_libraries';

/** A compilation that ends when it is told to, or when it is stopped. */
function compilation() {
  const seen: { runs: number; signal: AbortSignal | null } = { runs: 0, signal: null };
  let [end, fail] = [(): void => {}, (_: Error): void => {}];
  const work = (signal: AbortSignal): Promise<void> => {
    Object.assign(seen, { runs: seen.runs + 1, signal });
    return new Promise<void>((resolve, reject) => {
      [end, fail] = [resolve, reject];
      signal.addEventListener('abort', () => reject(new Error('stopped')));
    });
  };
  return { seen, work, end: () => end(), fail: () => fail(new Error('does not compile')) };
}

test('a deployment that is cancelled stops waiting, and the others get the library', async () => {
  const libraries = openGoLibraries();
  const { seen, work, end } = compilation();
  const first = new AbortController();
  const cancelled = libraries.compile('1.99.1', work, first.signal);
  const second = libraries.compile('1.99.1', work, new AbortController().signal);
  first.abort();
  await expect(cancelled).rejects.toThrow(/abort/);
  expect([seen.runs, seen.signal!.aborted]).toEqual([1, false]);
  end();
  await second;
  expect(libraries.hasFailed('1.99.1')).toBe(false);
});

test('with the last that waits it ends, which is no failure, and the next compiles', async () => {
  const libraries = openGoLibraries();
  const { seen, work, end } = compilation();
  const only = new AbortController();
  const cancelled = libraries.compile('1.99.1', work, only.signal);
  only.abort();
  await expect(cancelled).rejects.toThrow(/abort/);
  expect(seen.signal!.aborted).toBe(true);
  const next = libraries.compile('1.99.1', work, new AbortController().signal);
  end();
  await next;
  expect([seen.runs, libraries.hasFailed('1.99.1')]).toEqual([2, false]);
});

test('a failure is kept in mind for ten minutes, of that version alone', async () => {
  const libraries = openGoLibraries();
  const { work, fail } = compilation();
  const failing = libraries.compile('1.99.1', work, new AbortController().signal);
  fail();
  await failing;
  expect([libraries.hasFailed('1.99.1'), libraries.hasFailed('1.99.2')]).toEqual([true, false]);
  const now = Date.now();
  const clock = jest.spyOn(Date, 'now').mockReturnValue(now + 10 * 60_000 + 1);
  try {
    expect(libraries.hasFailed('1.99.1')).toBe(false);
  } finally {
    clock.mockRestore();
  }
});
