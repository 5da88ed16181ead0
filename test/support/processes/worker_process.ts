// A worker in a process of its own, to be stopped, killed and revived.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { settled, type Job } from '../../../jobs/job';
import { startLoop, type LoopOptions } from '../../../jobs/loop';
import { allJobs } from '../../../jobs/all_jobs';
import { openParts } from '../runner/workshop';

export interface WorkerOptions {
  url: string;
  directory: string;
  loop: Partial<Omit<LoopOptions, 'jobs'>>;
  /** Instead of the real jobs: one on the table schedules that writes what it does into probe_log. */
  probe?: { stepMs: number };
}

export interface WorkerProcess {
  pid: number;
  /** Sends a signal; resolves at once. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  /** kill -9, and waits for the end. */
  kill(): Promise<void>;
  /** SIGTERM, and waits for the end. Returns the exit code. */
  stop(): Promise<number | null>;
  /** What it has logged so far. */
  output(): string;
}

/** Resolves when the worker's loop runs. */
export async function startWorkerProcess(options: WorkerOptions): Promise<WorkerProcess> {
  const register = path.join(__dirname, '../runner/typescript.js');
  const child = spawn(process.execPath, ['--require', register, __filename, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  const ended = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)));
  const ready = new Promise<void>((resolve, reject) => {
    const onOutput = (text: Buffer): void => {
      output += text.toString();
      if (output.includes('worker ready')) resolve();
    };
    child.stdout.on('data', onOutput);
    child.stderr.on('data', onOutput);
    void ended.then((code) => reject(new Error(`the worker ended with ${code}: ${output}`)));
  });
  await ready;
  return {
    pid: child.pid as number,
    signal: (name) => void child.kill(name),
    kill: async () => void (child.kill('SIGKILL'), await ended),
    stop: () => (child.kill('SIGTERM'), ended),
    output: () => output,
  };
}

async function main({ url, directory, loop: options, probe }: WorkerOptions): Promise<void> {
  const parts = await openParts(url, directory, 'warn');
  const jobs = probe ? [probeJob(probe.stepMs)] : allJobs().filter(({ table }) => table === 'volumes');
  const loop = startLoop(parts, { ...options, jobs });
  process.once(
    'SIGTERM',
    () =>
      void loop
        .stop()
        .then(() => parts.database.close())
        .then(() => process.exit(0)),
  );
  process.stdout.write('worker ready\n');
}

/** Its steps take `stepMs` or a little more, and leave a line with beginning and end. */
function probeJob(stepMs: number): Job {
  return {
    table: 'schedules',
    // Far more than the lease: only the heartbeat keeps it.
    stepMs: 30_000,
    async reconcile(row, { sql }) {
      const worker = String(process.pid);
      const begin = {
        name: 'probe_begin',
        text: 'insert into probe_log (id, worker, fence, began_at) values ($1, $2, $3, clock_timestamp())',
      };
      await sql.query(begin, [row.id, worker, row.fence]);
      await sleep(stepMs * (1 + Math.random() * 0.2));
      const end = {
        name: 'probe_end',
        text: 'update probe_log set ended_at = clock_timestamp() where id = $1 and fence = $2 and worker = $3',
      };
      await sql.query(end, [row.id, row.fence, worker]);
      return settled({ observed: { worker } });
    },
  };
}

if (require.main === module) void main(JSON.parse(process.argv[2] as string) as WorkerOptions);
