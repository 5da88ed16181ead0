// npm run bench:deploy: how long a deployment and a rollback take, what the ingress of a whole installation costs, and
// what applications cost that do nothing.
//   [NETWORK=isolated] npm run bench:deploy -- [--rounds=5] [--idle=100]
// The service runs as `npm start` runs it in production, with the embedded database; deployments go through the API.
import { once } from 'node:events';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { makeRepository } from '../../demo/repository';
import { openStage, type Stage } from '../../demo/stage';
import { visit } from '../../demo/visitors';
import { idleCost, cpuUsage } from '../idle';
import { load, type Shot } from '../load';
import { median } from '../measure';
import { printLine, runBench } from '../run';
import {
  change,
  deploy,
  deployRow,
  makeApplication,
  removeAll,
  seconds,
  untilServed,
  type Application,
  type Deployed,
} from './deployments';

const OPEN = {
  NETWORK: process.env.NETWORK ?? 'shared',
  RATE_LIMIT_READ: '10000000',
  RATE_LIMIT_WRITE: '10000000',
  RATE_LIMIT_DEPLOY: '10000000',
  QUOTAS: '{"applications":null}',
};
const RATIO_TARGET = 0.5;
const CONNECTIONS = 32;
const LOAD = { rounds: 5, milliseconds: 1_500 };
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { rounds: { type: 'string', default: '5' }, idle: { type: 'string', default: '100' } },
  });
  const [rounds, idle] = [Number(values.rounds), Number(values.idle)];
  printLine(
    `Node ${process.version}, ${os.cpus().length} cores (${os.cpus()[0]?.model.trim()}), load ` +
      `${os.loadavg()[0]?.toFixed(1)}\n`,
  );
  const stage = await openStage(OPEN);
  const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]).then(() =>
    Promise.reject(new Error('interrupted')),
  );
  try {
    await Promise.race([measure(stage, rounds, idle), stopped]);
  } finally {
    await removeAll(stage);
    await stage.close();
  }
}

async function measure(stage: Stage, rounds: number, idle: number): Promise<void> {
  const repository = makeRepository(path.join(stage.directory, 'sample'));
  repository.commit('first', 'First version');
  const application = await makeApplication(stage, 'sample', repository.url, 'l-2gb');
  const cold = await deploy(stage, application, 'version 1');
  const warm: Deployed[] = [];
  for (let round = 1; round <= rounds; round += 1)
    warm.push(await deploy(stage, application, change(stage, repository, round)));
  const rollbacks = await rollBacks(stage, application, [cold, ...warm].slice(-2) as [Deployed, Deployed], rounds);
  printLine(
    '| From POST to the first 200 of the new version | s | of it source | build | start and switch |\n' +
      '|---|--:|--:|--:|--:|',
  );
  printLine(deployRow('first deployment of an application', [cold]));
  printLine(deployRow(`with warm cache, median of ${rounds}`, warm));
  printLine(`| rollback, median of ${rounds} | ${seconds(median(rollbacks))} | | | |\n`);
  await throughIngress(stage, application);
  if (idle > 0) await idleCost(stage, idle, printLine);
}

/** Back and forth between two versions. */
async function rollBacks(
  stage: Stage,
  { id, host }: Application,
  [older, newer]: [Deployed, Deployed],
  rounds: number,
): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const to = round % 2 ? newer : older;
    const begin = performance.now();
    const posted = await stage.api.call('POST', `/v2/applications/${id}/rollback`, { deployment_id: to.id });
    await untilServed(stage, host, to.greeting);
    times.push(performance.now() - begin);
    await stage.api.until(`/v2/applications/${id}/deployments/${posted.id}`, ({ status }) => status === 'active');
  }
  return times;
}

/**
 * What an application does for an answer. A page made of a list is the small application that people deploy; one word
 * is the least that there is.
 */
const ANSWERS = [
  { name: 'a page made of 50 rows', path: '/shop', body: '<!doctype html>', target: true },
  { name: 'one line of JSON', path: '/about', body: '{"greeting"', target: false },
];

/** The same instance, directly and through the ingress of the service, which also logs and counts requests. */
async function throughIngress(stage: Stage, { host }: Application): Promise<void> {
  // The port of an instance in an isolated network is not reachable from here: bench:ingress -- --networks compares.
  if (OPEN.NETWORK !== 'shared') return;
  const { port } = JSON.parse((await visit(stage.port, host, '/about')).body) as { port: number };
  printLine(
    '| Best of rounds | direct rps | ingress rps | ratio | CPU of the service, µs | target |\n' +
      '|---|--:|--:|--:|--:|---|',
  );
  for (const answer of ANSWERS) printLine(await compareAnswers(stage, host, port, answer));
  printLine('');
}

async function compareAnswers(
  stage: Stage,
  host: string,
  port: number,
  { name, path: place, body, target }: (typeof ANSWERS)[number],
): Promise<string> {
  const shot: Shot = { request: `GET ${place} HTTP/1.1\r\nHost: ${host}\r\nAccept: */*\r\n\r\n`, status: 200, body };
  const [direct, through, cpu] = [[], [], []] as [number[], number[], number[]];
  for (let round = 0; round <= LOAD.rounds; round += 1) {
    const one = await load({ port, connections: CONNECTIONS, milliseconds: LOAD.milliseconds, next: () => shot });
    const before = await cpuUsage(stage);
    const other = await load({
      port: stage.port,
      connections: CONNECTIONS,
      milliseconds: LOAD.milliseconds,
      next: () => shot,
    });
    if (round === 0) continue; // warm-up
    direct.push(one.rps);
    through.push(other.rps);
    cpu.push(((await cpuUsage(stage)).cpu - before.cpu) / other.requests);
  }
  const ratio = Math.max(...through) / Math.max(...direct);
  const verdict = target ? `≥ ${RATIO_TARGET}: ${ratio >= RATIO_TARGET ? 'met' : 'MISSED'}` : '';
  return (
    `| ${name} | ${Math.max(...direct).toFixed(0)} | ${Math.max(...through).toFixed(0)} | ${ratio.toFixed(2)} | ` +
    `${(Math.min(...cpu) * 1e6).toFixed(0)} | ${verdict} |`
  );
}

runBench(main);
