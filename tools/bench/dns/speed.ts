// Questions a second beside PowerDNS: in turns, since other work on the machine comes and goes, and by the CPU time of
// each question, which it hardly changes.
import { readFileSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import type { SigningKey } from '../../../core/protocols/dnssec';
import { printLine, requirePrograms } from '../run';
import { NAMES, newKey, run, startEmbedded, startPowerdns, ZONES, type Running } from './servers';

const ROUNDS = 5;
const SECONDS = 2;
const TICKS_PER_SECOND = 100;
/** For the delays: a load that neither server is busy with. */
const DELAY_RATE = 4_000;

interface Measured {
  perSecond: number;
  /** CPU time of the server per question, in microseconds. */
  cost: number;
}

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

async function dnsperf({ port }: Running, questions: string, more: string[]): Promise<string> {
  const args = ['-s', '127.0.0.1', '-p', String(port), '-d', questions, '-c', '8', ...more];
  return (await run('dnsperf', args, { maxBuffer: 1 << 28 })).stdout;
}

async function measure(server: Running, questions: string, flags: string[]): Promise<Measured> {
  const before = cpuSeconds(server.pid);
  const output = await dnsperf(server, questions, ['-l', String(SECONDS), '-Q', '1000000', ...flags]);
  const used = cpuSeconds(server.pid) - before;
  const completed = Number(/Queries completed:\s+(\d+)/.exec(output)?.[1]);
  return {
    perSecond: Number(/Queries per second:\s+([\d.]+)/.exec(output)?.[1]),
    cost: (used * 1e6) / completed,
  };
}

function median(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}

/** @param files of questions, another one each round; the last is used again */
async function compare(what: string, servers: Running[], files: string[], flags: string[], wanted: number) {
  const rounds: Measured[][] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const measured: Measured[] = [];
    for (const server of servers)
      measured.push(await measure(server, files[Math.min(round, files.length - 1)] as string, flags));
    rounds.push(measured);
  }
  const of = (index: number, pick: (one: Measured) => number): number =>
    median(rounds.map((measured) => pick(measured[index] as Measured)));
  const ratio = median(rounds.map(([ours, theirs]) => (ours as Measured).perSecond / (theirs as Measured).perSecond));
  const speeds = `${Math.round(of(0, (one) => one.perSecond))} : ${Math.round(of(1, (one) => one.perSecond))}`;
  const costs = `${of(0, (one) => one.cost).toFixed(1)} : ${of(1, (one) => one.cost).toFixed(1)}`;
  printLine(`${what.padEnd(32)} ${speeds} questions/s, ${costs} µs CPU, ratio ${ratio.toFixed(2)} (wanted ${wanted})`);
}

async function delays(what: string, servers: Running[], questions: string, flags: string[]): Promise<void> {
  const found: string[] = [];
  for (const server of servers) {
    const output = await dnsperf(server, questions, ['-l', '5', '-Q', String(DELAY_RATE), '-v', ...flags]);
    const times = [...output.matchAll(/^> \w+ \S+ \S+ ([\d.]+)$/gm)].map(([, seconds]) => Number(seconds) * 1000);
    times.sort((a, b) => a - b);
    const at = (part: number): string => (times[Math.floor(part * (times.length - 1))] ?? NaN).toFixed(2);
    found.push(`${at(0.5)} / ${at(0.99)}`);
  }
  printLine(`${what.padEnd(32)} delay p50 / p99 at ${DELAY_RATE}/s: ${found.join(' : ')} ms`);
}

export async function compareSpeed(directory: string): Promise<void> {
  requirePrograms('dnsperf', 'pdns_server');
  printLine(`${NAMES} names in ${ZONES} zones, one process each, dnsperf with 8 clients; ours : PowerDNS`);
  const known = path.join(directory, 'known');
  const names = Array.from({ length: NAMES }, (_, index) => `host${index % (NAMES / ZONES)}.zone${index % ZONES}`);
  writeFileSync(known, names.map((name) => `${name}.example.com A\n`).join(''));
  await compareKind(directory, 'plain', [], known);
  await compareKind(directory, 'signed', [newKey('ksk'), newKey('zsk')], known);
}

async function compareKind(directory: string, kind: string, keys: SigningKey[], known: string): Promise<void> {
  const flags = keys.length ? ['-D'] : [];
  const ours = await startEmbedded(path.join(directory, `embedded-${kind}`), keys);
  const theirs = await startPowerdns(path.join(directory, `powerdns-${kind}`), keys, []);
  const both = [ours, theirs];
  for (const one of both) await measure(one, known, flags);
  await compare(`${kind}, known names, caches warm`, both, [known], flags, kind === 'plain' ? 0.9 : 0.8);
  await delays(`${kind}, known names`, both, known, flags);
  await compare(`${kind}, names never seen`, both, freshNames(directory, kind), flags, 0.8);
  theirs.stop();
  if (kind === 'plain') {
    const off = ['cache-ttl=0', 'query-cache-ttl=0', 'negquery-cache-ttl=0'];
    const bare = await startPowerdns(path.join(directory, 'powerdns-bare'), keys, off);
    await compare('plain, PowerDNS without caches', [ours, bare], [known], flags, 2);
    bare.stop();
  }
  ours.stop();
}

/** Names unique to each round, so that none is cached. */
function freshNames(directory: string, kind: string): string[] {
  return Array.from({ length: ROUNDS }, (_, round) => {
    const file = path.join(directory, `fresh-${kind}-${round}`);
    const names = Array.from({ length: 200_000 }, (_unused, index) => `no${index}-${round}.zone${index % ZONES}`);
    writeFileSync(file, names.map((name) => `${name}.example.com A\n`).join(''));
    return file;
  });
}
