// Calls of one process by another over the channel that node opens between them.
import type { ChildProcess } from 'node:child_process';

export interface Call {
  call: number;
  verb: string;
  argument: unknown;
}

interface Reply {
  reply: number;
  result?: unknown;
  /** Errno or message. */
  error?: string;
}

export interface Caller {
  call<T>(verb: string, argument?: unknown): Promise<T>;
}

/** Calls fail once the other process has ended. */
export function openCaller(child: ChildProcess): Caller {
  const waiting = new Map<number, { resolve(result: unknown): void; reject(error: Error): void }>();
  let last = 0;
  let hasEnded = false;
  const end = (): void => {
    hasEnded = true;
    for (const { reject } of waiting.values()) reject(new Error('the process has ended'));
    waiting.clear();
  };
  child.on('exit', end);
  child.on('error', end);
  child.on('message', ({ reply, result, error }: Reply) => {
    const one = waiting.get(reply);
    waiting.delete(reply);
    if (error === undefined) one?.resolve(result);
    else one?.reject(Object.assign(new Error(error), { code: error }));
  });
  return {
    call<T>(verb: string, argument?: unknown): Promise<T> {
      if (hasEnded || !child.connected) return Promise.reject(new Error('the process has ended'));
      last += 1;
      const call = last;
      return new Promise<T>((resolve, reject) => {
        waiting.set(call, { resolve: resolve as (result: unknown) => void, reject });
        child.send({ call, verb, argument } satisfies Call, (error) => error && reject(error));
      });
    },
  };
}

/** Answers the calls of the process that started this one, one after the other; ends with it. */
export function answerCalls(verbs: Record<string, (argument: never) => Promise<unknown>>): void {
  let running = Promise.resolve();
  process.on('message', ({ call, verb, argument }: Call) => {
    running = running.then(async () => {
      const reply: Reply = { reply: call };
      try {
        reply.result = await verbs[verb]?.(argument as never);
      } catch (error) {
        reply.error = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
      }
      if (process.connected) process.send?.(reply, () => {});
    });
  });
  process.on('disconnect', () => process.exit());
}
