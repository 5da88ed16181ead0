// Directories and databases for programs that start.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../databases/database';
import { processesWith, signalAll } from './processes';
import { endPrograms } from './program';

export let home: string;

export const databases: TestDatabase[] = [];

export async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 1_200 && !(await check()); turn += 1) await sleep(50);
}

export async function database(empty: boolean): Promise<string> {
  const made = empty ? await createEmptyDatabase() : await createTestDatabase();
  databases.push(made);
  return made.url;
}

export const directory = (name: string): string => path.join(home, name);

/** To be called where tests are declared. */
export function setUpStarts(): void {
  beforeAll(() => {
    home = mkdtempSync(path.join(tmpdir(), 'platform-start-'));
    // Programs of other users start in it.
    chmodSync(home, 0o755);
  });
  afterAll(async () => {
    await endPrograms();
    for (const database of databases.splice(0)) await database.drop();
    // Applications outlive the service.
    signalAll(processesWith(`${home}/`).map(({ pid }) => pid));
    await until(() => processesWith(`${home}/`).length === 0);
    rmSync(home, { recursive: true, force: true });
  });
}
