// Work that comes one by one and is done many at a time: while one batch is under way, the next one gathers.
import { setTimeout as sleep } from 'node:timers/promises';

export interface Batch<Input, Output> {
  add(input: Input): Promise<Output>;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
}

/**
 * @param run answers in the order of the inputs; where it throws, all of the batch fail
 * @param gatherMs how long the first one of a batch waits for others
 */
export function openBatch<Input, Output>(
  max: number,
  run: (inputs: Input[]) => Promise<readonly Output[]>,
  gatherMs = 0,
): Batch<Input, Output> {
  type Waiting = { input: Input; resolve(output: Output): void; reject(error: unknown): void };
  const waiting: Waiting[] = [];
  let running: Promise<void> | null = null;
  const work = async (): Promise<void> => {
    while (waiting.length) {
      // What comes in the same moment goes together.
      await (gatherMs && waiting.length < max ? sleep(gatherMs) : Promise.resolve());
      const batch = waiting.splice(0, max);
      try {
        const outputs = await run(batch.map(({ input }) => input));
        batch.forEach(({ resolve }, index) => resolve(outputs[index] as Output));
      } catch (error) {
        batch.forEach(({ reject }) => reject(error));
      }
    }
    running = null;
  };
  return {
    add: (input) =>
      new Promise((resolve, reject) => {
        waiting.push({ input, resolve, reject });
        running ??= work();
      }),
    idle: async () => void (await running),
  };
}
