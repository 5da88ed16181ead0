/** @user any */
// The lock around what is kept of logins: processes that die while they hold it, and others that find it stale.
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bundlePart } from '../support/cli/part';
import { follow, type Ran } from '../support/cli/svc';

const PROCESSES = 6;
/** No process has it: Linux has at most 2^22. */
const DEAD_PID = 999_999_999;
let directory: string;
let program: string;
beforeAll(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'svc-lock-'));
  program = path.join(directory, 'lock.cjs');
  bundlePart('config/lock.ts', program);
});
afterAll(() => fs.rmSync(directory, { recursive: true, force: true }));

/** Runs a script that has `withLock` and the path of the lock. */
const run = (script: string, lock: string): Promise<Ran> =>
  follow(
    spawn(process.execPath, [
      '-e',
      `const { withLock } = require(${JSON.stringify(program)}); const fs = require('fs');
      const lock = ${JSON.stringify(lock)};
      const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      void (async () => { ${script} })();`,
    ]),
  ).ended;

const ROUNDS = `
  const dead = '${DEAD_PID} ' + require('os').hostname() + ' died';
  for (let round = 0; round < 40; round += 1) {
    await withLock(lock, async () => {
      fs.writeFileSync(lock + '.inside', '', { flag: 'wx' });
      await sleep(1);
      fs.rmSync(lock + '.inside');
    });
    try { fs.writeFileSync(lock, dead, { flag: 'wx' }); } catch {}
  }`;

test('is held by one at a time, where holders die and several find a stale lock at once', async () => {
  const lock = path.join(directory, 'contended.lock');
  const ran = await Promise.all(Array.from({ length: PROCESSES }, () => run(ROUNDS, lock)));
  expect(ran).toEqual(ran.map(() => ({ code: 0, stdout: '', stderr: '' })));
  expect(fs.readdirSync(directory).filter((name) => name.startsWith('contended.lock.'))).toEqual([]);
});

test('is not taken from whoever was faster, by one that judged it before', async () => {
  const lock = path.join(directory, 'slow.lock');
  fs.writeFileSync(lock, `${DEAD_PID} ${os.hostname()} x`);
  const judged = path.join(directory, 'judged');
  const slow = run(
    `const { kill } = process;
    process.kill = (...args) => {
      process.kill = kill;
      fs.writeFileSync(${JSON.stringify(judged)}, '');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1500);
      kill(...args);
    };
    await withLock(lock, async () => console.log(fs.existsSync(lock + '.inside') ? 'both' : 'alone'));`,
    lock,
  );
  while (!fs.existsSync(judged)) await new Promise((resolve) => setTimeout(resolve, 20));
  const fast = run(
    `await withLock(lock, async () => {
      fs.writeFileSync(lock + '.inside', '');
      await sleep(3000);
      fs.rmSync(lock + '.inside');
    });`,
    lock,
  );
  expect(await Promise.all([slow, fast])).toMatchObject([{ code: 0, stdout: 'alone\n' }, { code: 0 }]);
});

test('is taken over where the process that took over a stale one died meanwhile', async () => {
  const lock = path.join(directory, 'nested.lock');
  const take = `await withLock(lock, async () => console.log('held'));`;
  const dead = `${DEAD_PID} ${os.hostname()} x`;
  fs.writeFileSync(lock, dead);
  const killed = `
    const { renameSync } = fs;
    fs.renameSync = () => process.kill(process.pid, 'SIGKILL');
    ${take}`;
  for (let depth = 0; depth < 2; depth += 1) expect((await run(killed, lock)).code).toBeNull();
  expect(fs.readdirSync(directory).filter((name) => /^nested\.lock\.[0-9a-f]{16}/.test(name)).length).toBeGreaterThan(
    0,
  );
  expect(await run(take, lock)).toEqual({ code: 0, stdout: 'held\n', stderr: '' });
  expect(fs.existsSync(lock)).toBe(false);
});

test('of another computer, or without a word yet, is waited for until nobody touches it', async () => {
  const lock = path.join(directory, 'foreign.lock');
  const take = `await withLock(lock, async () => console.log('held'));`;
  for (const mark of ['', `${DEAD_PID} elsewhere.example.com x`]) {
    fs.writeFileSync(lock, mark);
    const waiting = run(`setTimeout(() => process.exit(7), 1500); ${take}`, lock);
    expect((await waiting).code).toBe(7);
    fs.utimesSync(lock, new Date(0), new Date(0));
    expect(await run(take, lock)).toMatchObject({ code: 0, stdout: 'held\n' });
  }
});
