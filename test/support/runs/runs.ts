// Runs of a deployed application, on a service that really runs them.
import type { TestApplication } from '../deployments/deploy';
import { waitFor } from '../wait_for';

/* oxlint-disable typescript/no-explicit-any -- bodies of answers */
export type RunBody = any;

const UNFINISHED = new Set(['queued', 'starting', 'running']);

/** Starts a command and answers its run at once. */
export function startRun(
  application: Pick<TestApplication, 'post'>,
  command: string,
  more: object = {},
): Promise<RunBody> {
  return application.post('/runs', { command, ...more });
}

/** Waits until a run has a status. */
export function runIs(
  application: Pick<TestApplication, 'get'>,
  id: string,
  status: string,
  withinMs = 30_000,
): Promise<RunBody> {
  return waitFor(
    `run ${id} is ${status}`,
    async () => {
      const run = await application.get(`/runs/${id}`);
      return run.status === status ? run : null;
    },
    withinMs,
  );
}

/** Waits for the end of a run. */
export function runEnded(application: Pick<TestApplication, 'get'>, id: string, withinMs = 40_000): Promise<RunBody> {
  return waitFor(
    `the end of run ${id}`,
    async () => {
      const run = await application.get(`/runs/${id}`);
      return UNFINISHED.has(run.status) ? null : run;
    },
    withinMs,
  );
}

/** Runs a command to its end. */
export async function finishedRun(
  application: Pick<TestApplication, 'get' | 'post'>,
  command: string,
  more: object = {},
): Promise<RunBody> {
  return runEnded(application, (await startRun(application, command, more)).id);
}

/** Messages of the log of a run, oldest first. */
export async function runLog(application: Pick<TestApplication, 'get'>, id: string): Promise<string[]> {
  const { data } = await application.get(`/runs/${id}/logs?order=asc&limit=1000`);
  return data.map(({ message }: { message: string }) => message);
}
