// npm run bench:restore: what a backup costs visitors while it is made, and how long a whole installation is away that
// is destroyed and restored on an empty machine.
//   npm run bench:restore -- [--gigabytes=0.3] [--archive] [--seconds=20]
// A third each is files of a volume, objects and rows of PostgreSQL, beside one of each kind of resource that is proven
// by use (kinds.ts); the API is written to all the time. As root, the
// restored installation runs in a network namespace of its own, with other addresses and directories. The backup is one
// of restic, or with --archive a file. The exit code is 1 where something did not come back.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openParent } from '../../demo/dns';
import { freePort } from '../../demo/ports';
import { openStage, type Stage } from '../../demo/stage';
import { load, type Round } from '../load';
import { printLine, runBench } from '../run';
import { openAuthority } from './authority';
import { KINDS, type Bench, type Made } from './kinds';
import { allLists, lostEntries, WRITTEN } from './lists';
import { fillSite, hasNotifier, inventoryOf, logIn, makeUser, pageOf, type Inventory, type Site } from './site';

const OPERATOR = path.resolve(__dirname, '../../../server/operator/main.js');
const NAMESPACE = 'platform-restored';
const OTHER_ADDRESS = '192.0.2.77';
const CONNECTIONS = 4;
const WRITE_EVERY_MS = 200;

/** What the second half, which may run in a namespace, is told. */
interface Told {
  site: Site;
  made: Made;
  proofs: Record<string, string>;
  lists: Record<string, string[]>;
  before: Inventory;
  settings: Record<string, string>;
  from: string;
  passphrase: string;
  directory: string;
  key: string;
  lastWrite: string;
}

const { values } = parseArgs({
  options: {
    gigabytes: { type: 'string', default: '0.3' },
    seconds: { type: 'string', default: '20' },
    archive: { type: 'boolean', default: false },
    restored: { type: 'string' },
  },
});

runBench(() => (values.restored === undefined ? measure() : restored(values.restored)));

async function measure(): Promise<void> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'platform-restore-'));
  chmodSync(folder, 0o711);
  const passphrase = path.join(folder, 'passphrase');
  writeFileSync(passphrase, 'of the measurement\n', { mode: 0o600 });
  const from = path.join(folder, values.archive ? 'backup.tar.gz.age' : 'repository');
  const parent = await openParent();
  const [s3, registry, smtp, smartHost, tls] = await Promise.all([0, 1, 2, 3, 4].map(() => freePort()));
  const authority = await openAuthority(folder);
  const settings = {
    ...{ ...parent.settings, S3_PORT: String(s3), NETWORK: 'shared', MX_PORT: '0', REGISTRY_PORT: String(registry) },
    ...{ SMTP_PORTS: String(smtp), SMTP_URL: `smtp://127.0.0.1:${smartHost}`, INGRESS_TLS_PORT: String(tls) },
    // The zone of the measurement is all of the DNS that it needs.
    ...{ DNS_RESOLVERS: `127.0.0.1:${parent.port}`, ...authority.settings },
    // Not those of another installation of this machine, which guards its own.
    DATABASE_PORTS: '31700-31799',
    ...{ RATE_LIMIT_READ: '10000000', RATE_LIMIT_WRITE: '10000000' },
    QUOTAS: '{"notifiers":null,"buckets":null,"databases":null,"applications":null}',
  };
  const stage = await openStage(settings);
  try {
    const site = await fillSite(stage, Number(values.gigabytes), parent);
    const made = await makeKinds({ stage, settings, folder });
    makeUser(stage, OPERATOR);
    const backup = await backUpUnderLoad(stage, site, { from, passphrase });
    const before = await inventoryOf(stage, site, { dns: parent.port });
    const proofs = await proveKinds({ stage, settings, folder }, made, AWAY_BEFORE);
    const lists = await allLists(stage);
    const key = readFileSync(path.join(stage.directory, 'first-key.json'), 'utf8');
    await destroy(stage);
    authority.close();
    const directory = path.join(folder, 'data');
    const found = { made, proofs, lists, before };
    const told = { site, ...found, settings, from, passphrase, key, directory, ...backup };
    writeFileSync(path.join(folder, 'told.json'), JSON.stringify(told), { mode: 0o600 });
    process.exitCode = runRestored(path.join(folder, 'told.json'));
  } finally {
    await destroy(stage);
    authority.close();
    parent.close();
    killProcessesOf(path.join(folder, 'data'));
    rmSync(folder, { recursive: true, force: true });
  }
  process.exit();
}

/** Its mail waits until the installation is restored. */
const AWAY_BEFORE: readonly string[] = ['mail: accepted and queued'];

async function makeKinds(bench: Bench): Promise<Made> {
  const made: Made = {};
  for (const { name, make } of KINDS) {
    process.stderr.write(`making: ${name}\n`);
    await make(bench, made).catch((error: Error) => printLine(`${name} could not be made: ${error.message}`));
  }
  return made;
}

const PROVEN_WITHIN_MS = 120_000;

/** @returns by kind, what the proof has answered, or why there is none */
async function proveKinds(bench: Bench, made: Made, except: readonly string[] = []): Promise<Record<string, string>> {
  const proofs: Record<string, string> = {};
  for (const { name, prove } of KINDS.filter((one) => !except.includes(one.name))) {
    const began = Date.now();
    for (const end = began + PROVEN_WITHIN_MS; proofs[name] === undefined; await sleep(500))
      await prove(bench, made).then(
        (proof) => (proofs[name] = proof),
        (error: Error) => Date.now() > end && (proofs[name] = `FAILED: ${error.message}`),
      );
    process.stderr.write(`proven: ${name}, after ${Math.round((Date.now() - began) / 1000)} s\n`);
  }
  return proofs;
}

async function backUpUnderLoad(stage: Stage, site: Site, to: { from: string; passphrase: string }) {
  const writes = startWrites(stage);
  try {
    const milliseconds = Number(values.seconds) * 1000;
    const quiet = await visits(stage, site, milliseconds);
    writes.forget();
    const began = performance.now();
    let isDone = false;
    const rounds: Round[] = [];
    const backup = operator(stage.directory, backupWords(to), to).finally(() => (isDone = true));
    while (!isDone) rounds.push(await visits(stage, site, 2_000));
    const { output, memoryMb } = await backup;
    const p99 = Math.max(...rounds.map((round) => round.p99));
    printLine(`backup and proof: ${((performance.now() - began) / 1000).toFixed(1)} s\n${output.trim()}`);
    printLine(`memory of the command and of what it starts: ${memoryMb} MB at most`);
    printLine(`visitors: p99 ${quiet.p99.toFixed(1)} ms before, ${p99.toFixed(1)} ms at worst of 2 s meanwhile`);
    const rps = rounds.reduce((sum, one) => sum + one.rps, 0) / rounds.length;
    printLine(`          ${quiet.rps.toFixed(0)} requests a second before, ${rps.toFixed(0)} meanwhile, none lost`);
    printLine(`API: the longest time without an answered write was ${writes.longestGapMs()} ms`);
    return { lastWrite: writes.lastBeforeBackup() };
  } finally {
    await writes.stop();
  }
}

const backupWords = ({ from }: { from: string }): string[] => ['backup', ...(values.archive ? ['--to', from] : [])];

function visits(stage: Stage, { application }: Site, milliseconds: number): Promise<Round> {
  const request = `GET / HTTP/1.1\r\nHost: ${String(application.default_hostname)}\r\n\r\n`;
  const shot = { request, status: 200, body: null };
  return load({ port: stage.port, connections: CONNECTIONS, milliseconds, next: () => shot });
}

/** Writes to the API, one after the other. */
function startWrites({ api }: Stage) {
  let [isStopped, number, last, gap, kept] = [false, 0, performance.now(), 0, ''];
  const running = (async () => {
    for (; !isStopped; await sleep(WRITE_EVERY_MS)) {
      const name = `${WRITTEN}${(number += 1)}`;
      await api.call('POST', '/v2/notifiers', { name, type: 'webhook', config: { url: 'https://example.com/' } });
      const now = performance.now();
      gap = Math.max(gap, now - last - WRITE_EVERY_MS);
      last = now;
    }
  })();
  running.catch(() => undefined);
  return {
    forget: () => ([gap, kept] = [0, `${WRITTEN}${number}`]),
    longestGapMs: () => Math.round(gap),
    lastBeforeBackup: () => kept,
    stop: () => ((isStopped = true), running),
  };
}

function operator(directory: string, words: string[], { from, passphrase }: Pick<Told, 'from' | 'passphrase'>) {
  const env = {
    ...{ PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: 'production', PLATFORM_DATA_DIR: directory },
    ...{ RESTIC_PASSWORD_FILE: passphrase, VOLUME_DRIVER: 'directory', NETWORK: 'shared' },
    ...(!values.archive && { RESTIC_REPOSITORY: from }),
  };
  return new Promise<{ output: string; memoryMb: number }>((resolve, reject) => {
    const child = spawn(process.execPath, [OPERATOR, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    let [out, err] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
    let memoryMb = 0;
    const watch = setInterval(() => (memoryMb = Math.max(memoryMb, memoryOf(child.pid as number))), 200);
    child.on('close', (code) => {
      clearInterval(watch);
      if (code === 0) resolve({ output: out + err, memoryMb });
      else reject(new Error(`${words.join(' ')}: ${out}${err}`));
    });
  });
}

/** Of a process and its descendants, in megabytes. */
function memoryOf(pid: number | string): number {
  try {
    const [, kilobytes = 0] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
    return children.reduce((sum, child) => sum + memoryOf(child), Math.round(Number(kilobytes) / 1024));
  } catch {
    return 0;
  }
}

/** All of its processes end at once, and its directory is gone. */
async function destroy(stage: Stage): Promise<void> {
  await stage.kill();
  killProcessesOf(stage.directory);
  await sleep(500);
  killProcessesOf(stage.directory);
  rmSync(stage.directory, { recursive: true, force: true });
}

function killProcessesOf(directory: string): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid))
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8') + readFileSync(`/proc/${pid}/environ`, 'utf8');
      if (words.includes(directory)) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has ended, or is not ours.
    }
}

/** The second half, in a namespace where that can be made. @returns exit code */
function runRestored(told: string): number {
  const words = [...process.execArgv, __filename, `--restored=${told}`, ...(values.archive ? ['--archive'] : [])];
  const ip = (...more: string[]): unknown => execFileSync('ip', more, { stdio: 'ignore' });
  if (process.getuid?.() !== 0) return spawnSync(process.execPath, words, { stdio: 'inherit' }).status ?? 1;
  ip('netns', 'add', NAMESPACE);
  try {
    ip('-n', NAMESPACE, 'link', 'set', 'lo', 'up');
    ip('-n', NAMESPACE, 'addr', 'add', `${OTHER_ADDRESS}/32`, 'dev', 'lo');
    const inside = ['netns', 'exec', NAMESPACE, process.execPath, ...words];
    return spawnSync('ip', inside, { stdio: 'inherit' }).status ?? 1;
  } finally {
    ip('netns', 'delete', NAMESPACE);
  }
}

async function restored(file: string): Promise<void> {
  const told = JSON.parse(readFileSync(file, 'utf8')) as Told;
  const began = performance.now();
  const since = (): string => `${((performance.now() - began) / 1000).toFixed(1)} s`;
  const { memoryMb } = await operator(told.directory, ['restore', '--from', told.from], told);
  printLine(`restored after ${since()}, with ${memoryMb} MB of memory at most`);
  writeFileSync(path.join(told.directory, 'first-key.json'), told.key, { mode: 0o600 });
  const stage = await openStage(told.settings, told.directory);
  try {
    printLine(`the API answers after ${since()}`);
    await pageOf(stage, told.site);
    printLine(`the application answers after ${since()}`);
    for (const id of [told.site.postgresql, told.site.redis])
      await stage.api.until(`/v2/databases/${id}`, ({ status }) => status === 'available', 600_000);
    printLine(`all databases answer after ${since()} (RTO)`);
    const bench = { stage, settings: told.settings, folder: path.dirname(file) };
    const wrong = await compareKinds(bench, told);
    const after = await inventoryOf(stage, told.site, { dns: Number(told.settings.DNS_PORT) });
    wrong.push(...differences(told.before, after));
    if (!(await logIn(stage))) wrong.push('the login');
    if (!(await hasNotifier(stage, told.lastWrite))) wrong.push('the last row written before the backup');
    for (const one of wrong) printLine(`NOT AS BEFORE: ${one}`);
    if (wrong.length === 0) printLine('all is as before: counts, hashes, rows, DNS, page, variables, login, key');
    process.exitCode = wrong.length ? 1 : 0;
  } finally {
    await stage.kill();
    killProcessesOf(told.directory);
  }
  process.exit();
}

async function compareKinds(bench: Bench, { made, proofs: before, lists }: Told): Promise<string[]> {
  const wrong: string[] = [];
  const began = performance.now();
  const proofs = await proveKinds(bench, made);
  printLine(`each kind is proven after further ${((performance.now() - began) / 1000).toFixed(1)} s`);
  for (const [name, proof] of Object.entries(proofs)) {
    const isSame = !proof.startsWith('FAILED') && (AWAY_BEFORE.includes(name) || proof === before[name]);
    printLine(`  ${isSame ? 'as before' : 'NOT AS BEFORE'}  ${name}: ${proof.replaceAll('\n', ' ').slice(0, 70)}`);
    if (!isSame) wrong.push(`${name}: ${before[name]} was, ${proof} is`);
  }
  const found = await allLists(bench.stage);
  const entries = Object.values(lists).reduce((sum, ids) => sum + ids.length, 0);
  printLine(`  ${Object.keys(lists).length} lists of the API with ${entries} entries before`);
  return [...wrong, ...lostEntries(lists, found)];
}

function differences(before: Inventory, after: Inventory): string[] {
  const text = (value: unknown): string => JSON.stringify(value).slice(0, 200);
  const found: string[] = [];
  for (const part of Object.keys(before) as (keyof Inventory)[])
    if (JSON.stringify(before[part]) !== JSON.stringify(after[part]))
      found.push(`${part}: ${text(before[part])} was, ${text(after[part])} is`);
  return found;
}
