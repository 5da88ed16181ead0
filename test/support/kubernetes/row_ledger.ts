// Numbered rows that psql writes into a database one after the other, each in a transaction and a few over one
// connection, from a node of the cluster: what was acknowledged has to be there afterwards.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { waitFor } from '../wait_for';

export interface RowLedger {
  /** Numbers of rows that were acknowledged. */
  acknowledged: number[];
  /** Milliseconds until the next row from now on. @throws Error where there is none in time */
  untilNext(withinMs: number): Promise<number>;
  /** The longest time without a row, ms. */
  longestGap(): number;
  stop(): Promise<void>;
}

export interface LedgerSource {
  /** Path of psql. */
  psql: string;
  /** The address that the platform gives. */
  url: string;
  /** PEM. */
  authority: string;
  /** Of the Service: this machine has no DNS of the cluster. */
  address: string;
  /** A process of the node from which it writes. */
  processId: number;
}

const PAUSE_MS = 50;
const ROWS_AT_ONCE = 20;
const STATEMENT_MS = 10_000;

/** The table `ledger` exists. */
export function writeRows({ psql, url, authority, address, processId }: LedgerSource): RowLedger {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'ledger-'));
  const root = path.join(directory, 'ca.pem');
  writeFileSync(root, authority);
  const target = new URL(url);
  for (const [name, value] of Object.entries({ sslmode: 'verify-full', sslrootcert: root, connect_timeout: '2' }))
    target.searchParams.set(name, value);
  const acknowledged: number[] = [];
  let [stopped, last, longest, number] = [false, performance.now(), 0, 0];
  const write = async (): Promise<void> => {
    const statements = Array.from(
      { length: ROWS_AT_ONCE },
      () => `insert into ledger values (${(number += 1)}) returning n`,
    );
    const words = ['--net', `--target=${processId}`, psql, '-Atq', '-v', 'ON_ERROR_STOP=1', '-d', target.href];
    const written = promisify(execFile)('nsenter', [...words, ...statements.flatMap((one) => ['-c', one])], {
      ...{ env: { ...process.env, PGHOSTADDR: address }, timeout: STATEMENT_MS, killSignal: 'SIGKILL' },
    });
    // Of those that fail, the rows before were acknowledged.
    const { stdout } = await written.catch((error: { stdout: string }) => error);
    const numbers = stdout.split('\n').filter(Boolean).map(Number);
    if (numbers.length === 0) return;
    acknowledged.push(...numbers);
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const running = (async () => {
    while (!stopped) {
      await write().catch(() => undefined);
      await sleep(PAUSE_MS);
    }
  })();
  return {
    acknowledged,
    longestGap: () => Math.max(longest, performance.now() - last),
    async untilNext(withinMs) {
      const [count, from] = [acknowledged.length, performance.now()];
      await waitFor('a row', () => Promise.resolve(acknowledged.length > count), withinMs);
      return performance.now() - from;
    },
    async stop() {
      stopped = true;
      await running;
      rmSync(directory, { recursive: true });
    },
  };
}
