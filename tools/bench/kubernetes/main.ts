// npm run bench:kubernetes: deployments and requests on a cluster beside the same on the host, and hundreds of
// applications. Needs what npm run test:kubernetes needs.
//   npm run bench:kubernetes -- [--rounds=5] [--applications=300]
// On a cluster of KUBECONFIG, which others may use, hundreds of applications are measured only where --applications is
// given: their pods take all its room.
import { once } from 'node:events';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { createTestDatabase, openTestServer } from '../../../test/support/databases/database';
import { pushBaseImage, settingsFor } from '../../../test/support/kubernetes/cluster_settings';
import { freePort } from '../../../test/support/processes/free_port';
import { makeRepository, type Repository } from '../../demo/repository';
import { openStage, type Stage } from '../../demo/stage';
import {
  change,
  deploy,
  deployRow,
  makeApplication,
  removeAll,
  type Application,
  type Deployed,
} from '../hosts/deployments';
import { load, type Round, type Shot } from '../load';
import { median } from '../measure';
import { printLine, runBench } from '../run';
import { nodeLibraries, openCluster, removeNamespaces, type BenchCluster } from './cluster';
import { measureMany } from './many';

const OPEN = {
  ...{ NETWORK: 'shared', QUOTAS: '{"applications":null}' },
  ...{ RATE_LIMIT_READ: '10000000', RATE_LIMIT_WRITE: '10000000', RATE_LIMIT_DEPLOY: '10000000' },
};
const LOAD = { rounds: 5, milliseconds: 1_500, connections: 32 };
const SIZE = 'l-2gb';
const MANY = 300;

interface Place {
  name: string;
  stage: Stage;
  repository: Repository;
  application: Application;
  deployed: Deployed[];
  rounds: Round[];
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { rounds: { type: 'string', default: '5' }, applications: { type: 'string' } },
  });
  printLine(`Node ${process.version}, ${os.cpus().length} cores (${os.cpus()[0]?.model.trim()}), load ${loadOf()}\n`);
  const stopped = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]).then(() =>
    Promise.reject(new Error('interrupted')),
  );
  stopped.catch(() => undefined);
  const cluster = await openCluster();
  try {
    const applications = Number(values.applications ?? (cluster.isOwn ? MANY : 0));
    await measureOn(cluster, Number(values.rounds), applications, stopped);
  } finally {
    await cluster.stop();
  }
}

const loadOf = (): string => os.loadavg()[0]?.toFixed(1) ?? '';

async function measureOn(
  cluster: BenchCluster,
  rounds: number,
  applications: number,
  stopped: Promise<never>,
): Promise<void> {
  await openTestServer();
  const database = await createTestDatabase();
  const registryPort = await freePort();
  const ofCluster = await settingsFor(cluster, registryPort);
  const settings = { ...OPEN, ...ofCluster, DATABASE_URL: database.url };
  const host = await openStage(OPEN);
  const stages = [host];
  try {
    const onCluster = await openStage(settings);
    stages.push(onCluster);
    const measure = async (): Promise<void> => {
      await giveBaseImage(onCluster, registryPort);
      const places = [await openPlace('host', host), await openPlace('cluster', onCluster)];
      await measureDeployments(places, rounds);
      await measureRequests(places);
      if (applications < 2) return;
      const restart = async (meanwhile: () => Promise<void>): Promise<Stage> => {
        await onCluster.kill();
        await meanwhile();
        // At another port applications would have another SVC_URL, and start anew.
        const same = { ...settings, INGRESS_PORT: String(onCluster.port) };
        return (stages[1] = await openStage(same, onCluster.directory));
      };
      const many = { cluster, databaseUrl: database.url, count: applications, restart };
      await measureMany(many, (places[1] as Place).application);
      printLine(`\nload after it ${loadOf()}`);
    };
    await Promise.race([measure(), stopped]);
  } finally {
    await removeAll(host).catch(() => undefined);
    for (const stage of stages) await stage.close();
    await removeNamespaces(cluster, ofCluster.KUBERNETES_NAMESPACE_PREFIX ?? '');
    await database.drop();
  }
}

async function openPlace(name: string, stage: Stage): Promise<Place> {
  const repository = makeRepository(path.join(stage.directory, 'sample'));
  repository.commit('first', 'First version');
  const application = await makeApplication(stage, 'sample', repository.url, SIZE);
  await deploy(stage, application, 'version 1');
  return { name, stage, repository, application, deployed: [], rounds: [] };
}

async function measureDeployments(places: Place[], rounds: number): Promise<void> {
  for (let round = 1; round <= rounds; round += 1)
    for (const { stage, application, repository, deployed } of places)
      deployed.push(await deploy(stage, application, change(stage, repository, round)));
  printLine(`| From POST to the first 200, median of ${rounds} | s | of it source | build | start and switch |`);
  printLine('|---|--:|--:|--:|--:|');
  for (const { name, deployed } of places) printLine(deployRow(name, deployed));
  printLine(`\nload ${loadOf()}\n`);
}

/** The same page of the same sample, through the ingress of each. */
async function measureRequests(places: Place[]): Promise<void> {
  for (let round = 0; round <= LOAD.rounds; round += 1)
    for (const { stage, application, rounds } of places) {
      const request = `GET /shop HTTP/1.1\r\nHost: ${application.host}\r\nAccept: */*\r\n\r\n`;
      const shot: Shot = { request, status: 200, body: '<!doctype html>' };
      const found = await load({ ...LOAD, port: stage.port, next: () => shot });
      if (round > 0) rounds.push(found);
    }
  printLine(`| Requests through the ingress, median of ${LOAD.rounds} | a second | p50, ms | p99, ms |`);
  printLine('|---|--:|--:|--:|');
  for (const { name, rounds } of places) {
    const [rps, p50, p99] = (['rps', 'p50', 'p99'] as const).map((part) => median(rounds.map((one) => one[part])));
    printLine(`| ${name} | ${rps?.toFixed(0)} | ${p50?.toFixed(1)} | ${p99?.toFixed(1)} |`);
  }
  printLine(`\nload ${loadOf()}\n`);
}

async function giveBaseImage(stage: Stage, port: number): Promise<void> {
  const call = async (method: string, place: string, { body }: { body?: unknown } = {}): Promise<never> => {
    const response = await fetch(`${stage.address}${place}`, {
      method,
      headers: { ...stage.headers, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, body: await response.json() } as never;
  };
  const key = (stage.headers.Authorization ?? '').replace('Bearer ', '');
  await pushBaseImage({ call }, key, port, [await nodeLibraries()]);
}

runBench(main);
