// Other data for a server in a pod, by a restore: the counterpart of drivers/hosted_server/replacement.ts. The new data
// are written to a claim of their own by a Job with the image of the server. The server then starts with that claim;
// the old one stays until it answers, and takes its place again if it does not. Killed at any point, the same call goes
// on:
//   annotation FILLING of a claim   its data are of a replacement that is not done
//   annotation FILLED of a claim    they are whole
//   note `replacing`                the server was started with them, and had the claim `before`
//   note `replaced`                 key of the last replacement that is done
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job } from 'kubernetes-types/batch/v1';
import type { Pod } from 'kubernetes-types/core/v1';
import { checkpoint, DriverError, type DriverContext } from '../../../core/driver';
import { toSentence } from '../../../core/sentence';
import { resourceTypes } from '../../kubernetes/client/resource_type';
import type { ClaimOptions } from '../../workload/kubernetes/claims';
import { LABEL, selectorText, shortDigestOf } from '../../workload/kubernetes/names';
import { applyOwn } from '../../workload/kubernetes/own_object';
import { resourcesOf } from '../../workload/kubernetes/deployment';
import { NotReady } from '../../hosted_server/readiness';
import type { DatabaseServer } from '../../database';
import { CONTAINER, containerSecurity, serverObjectMetadata, POD_DATA, podBasics, type PodProgram } from './objects';
import {
  claimNameFor,
  ensureClaim,
  ensureServerPod,
  FILLING,
  findServerPod,
  isPodCurrent,
  readPodNote,
  removeOtherClaims,
  writePodNote,
  type ServerPod,
} from './server_pods';
import { stateOfServerPod } from './pod_state';

export interface PodReplacement {
  /** A repeated call with the same key goes on, or finds that it is done. */
  key: string;
  server: DatabaseServer;
  /** Of the disk for the new data. */
  bytes: number;
  program(claim: string): PodProgram;
  /** Gives files of this host to `work`, and removes them. Absent: the server starts with an empty disk. */
  withFiles?(work: (files: readonly LoadedFile[]) => Promise<void>): Promise<void>;
  /** What the new data are loaded with; absent: the server as it is. */
  loader?: { server: DatabaseServer; program(claim: string): PodProgram };
  /** @throws NotReady while the server starts, or loads its files */
  verify(server: ServerPod): Promise<void>;
  /** Loads data into the server that started, before its users exist. A repeated call loads them again. */
  load?(server: ServerPod): Promise<void>;
}

interface LoadedFile {
  file: string;
  /** Shell script that writes its standard input to POD_DATA; `$1`: bytes that must come. */
  script: string;
}

interface ReplacingNote {
  key: string;
  /** Claim with the old data; null: there were none. */
  before: string | null;
}

const FILLED = 'platform-api/filled';
const LOADER = 'platform-api/database-loader';
const POLL_MS = 500;
const LOADER_STARTS_MS = 120_000;
const LOADER_SECONDS = 6 * 3600;
const LOADER_SIZE = { memory_mb: 128, cpus: 1, disk_mb: null };
const { jobs, persistentVolumeClaims, pods } = resourceTypes;

/** @throws DriverError invalid where the server did not start with the new data: it has the old ones again */
export async function replacePodData(options: ClaimOptions, r: PodReplacement, ctx: DriverContext): Promise<void> {
  const found = await findServerPod(options, r.server, ctx);
  if (found !== 'absent' && found !== 'foreign' && isReplaced(found, r.key)) return;
  const next = `${serverObjectMetadata(options.prefix, r.server).name}-${shortDigestOf(r.key)}`;
  const begun = typeof found === 'string' ? null : readPodNote<ReplacingNote>(found, 'replacing');
  const before = begun?.key === r.key ? begun.before : await presentClaim(options, r.server, found, ctx);
  await fillClaim(options, r, next, ctx).catch(async (error: unknown) => {
    if (!ctx.signal.aborted && error instanceof DriverError && error.reason === 'invalid')
      await discardClaim(options, r.server, next, ctx);
    throw error;
  });
  // From here on a failure puts the old data back, also one of another call.
  if (typeof found !== 'string') await writePodNote(options, found, 'replacing', { key: r.key, before }, ctx);
  const started = await startAndLoad(options, r, next, ctx).catch(async (error: unknown) => {
    if (ctx.signal.aborted || !(error instanceof DriverError) || error.reason !== 'invalid') throw error;
    await putBack(options, r, before, ctx);
    throw error;
  });
  await writePodNote(options, started, 'replaced', { key: r.key }, ctx);
  await writePodNote(options, started, 'replacing', null, ctx);
  await annotate(options, r.server, next, { [FILLING]: null }, ctx);
  await removeOtherClaims(options, r.server, next, ctx);
}

/** The claim with the old data, while a replacement is not done; null: none is under way. */
export function claimBefore(found: ServerPod): string | null {
  return readPodNote<ReplacingNote>(found, 'replacing')?.before ?? null;
}

function isReplaced(found: ServerPod, key: string): boolean {
  return readPodNote<{ key: string }>(found, 'replaced')?.key === key;
}

async function presentClaim(
  options: ClaimOptions,
  server: DatabaseServer,
  found: ServerPod | 'absent' | 'foreign',
  ctx: DriverContext,
): Promise<string | null> {
  return found === 'absent' ? null : claimNameFor(options, server, found, ctx);
}

async function fillClaim(options: ClaimOptions, r: PodReplacement, name: string, ctx: DriverContext): Promise<void> {
  const place = { namespace: serverObjectMetadata(options.prefix, r.server).namespace, name };
  const present = await options.client.get(persistentVolumeClaims, place, ctx);
  if (present?.metadata?.annotations?.[FILLED] !== r.key) {
    await ensureClaim(options, r.server, { name, bytes: r.bytes }, ctx);
    await annotate(options, r.server, name, { [FILLING]: r.key }, ctx);
    if (r.withFiles) await applyOwn(options, jobs, loaderJob(options, r, name), ctx);
    await r.withFiles?.(async (files) => {
      for (const file of files) await loadFile(options, r, name, file, ctx);
    });
    await annotate(options, r.server, name, { [FILLED]: r.key }, ctx);
  }
  // While it is there, another machine cannot have the disk.
  await options.client.remove(jobs, place, { propagation: 'Background' }, ctx);
  while ((await loaderPods(options, r.server, name, ctx)).length > 0) {
    checkpoint(ctx);
    await sleep(POLL_MS);
  }
}

async function loadFile(
  options: ClaimOptions,
  r: PodReplacement,
  job: string,
  { file, script }: LoadedFile,
  ctx: DriverContext,
): Promise<void> {
  const pod = await runningLoader(options, r, job, ctx);
  const { size } = await stat(file);
  const { namespace, name = '' } = pod.metadata ?? {};
  const command = ['sh', '-c', script, 'sh', String(size)];
  const stream = await options.client.openPodStream({ namespace, name }, { command, stdin: true }, ctx);
  const said: string[] = [];
  stream.stdout.resume();
  stream.stderr.on('data', (chunk: Buffer) => said.push(chunk.toString().slice(0, 200)));
  try {
    // What it refuses to read, its exit code explains.
    const sent = pipeline(createReadStream(file), stream.stdin, { signal: ctx.signal }).catch(() => undefined);
    const { code, reason } = await stream.exit;
    await sent;
    if (code === 0) return;
    const message = `The data could not be written to the new disk: ${toSentence(said.at(-1) ?? reason ?? '')}`;
    throw new DriverError('transient', message, 5_000);
  } finally {
    stream.close();
  }
}

/** @throws DriverError transient with the reason where the cluster cannot start it yet */
async function runningLoader(options: ClaimOptions, r: PodReplacement, job: string, ctx: DriverContext): Promise<Pod> {
  const { namespace } = serverObjectMetadata(options.prefix, r.server);
  for (const end = Date.now() + LOADER_STARTS_MS; ; await sleep(POLL_MS)) {
    checkpoint(ctx);
    const [pod] = await loaderPods(options, r.server, job, ctx);
    if (pod?.status?.phase === 'Running') return pod;
    const hasEnded = pod?.status?.phase === 'Failed' || pod?.status?.phase === 'Succeeded';
    // Another one is made by the next call.
    if (hasEnded || Date.now() > end)
      await options.client.remove(jobs, { namespace, name: job }, { propagation: 'Background' }, ctx);
    const reason = pod && stateOfServerPod(pod, null).reason;
    if (reason || hasEnded || Date.now() > end)
      throw new DriverError('transient', reason ?? 'The cluster has not started what writes the data.', 5_000);
  }
}

async function loaderPods(
  options: ClaimOptions,
  server: DatabaseServer,
  job: string,
  ctx: DriverContext,
): Promise<Pod[]> {
  const { namespace } = serverObjectMetadata(options.prefix, server);
  const labelSelector = selectorText({ [LABEL.installation]: options.prefix, [LOADER]: job });
  return (await options.client.list(pods, { namespace, labelSelector }, ctx)).items;
}

/** Waits for a writer. Its labels are not those of the server's pod, which the Service would lead to. */
function loaderJob({ prefix }: ClaimOptions, r: PodReplacement, claim: string): Job {
  const { namespace, labels } = serverObjectMetadata(prefix, r.server);
  const { [LABEL.database]: _, ...own } = labels;
  return {
    metadata: { name: claim, namespace, labels },
    spec: {
      backoffLimit: 0,
      activeDeadlineSeconds: LOADER_SECONDS,
      template: {
        metadata: { labels: { ...own, [LOADER]: claim } },
        spec: {
          ...podBasics(),
          restartPolicy: 'Never',
          terminationGracePeriodSeconds: 0,
          containers: [
            {
              ...{ name: CONTAINER, image: r.program(claim).image, imagePullPolicy: 'IfNotPresent' },
              command: ['sleep', String(LOADER_SECONDS)],
              volumeMounts: [{ name: 'data', mountPath: POD_DATA }],
              resources: resourcesOf({ limits: LOADER_SIZE }),
              securityContext: containerSecurity(),
            },
          ],
          volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim } }],
        },
      },
    },
  };
}

/** @throws DriverError invalid where the server does not take the data */
async function startAndLoad(
  options: ClaimOptions,
  r: PodReplacement,
  claim: string,
  ctx: DriverContext,
): Promise<ServerPod> {
  const started = await startWith(options, r, claim, ctx);
  await r.load?.(started).catch(async (error: unknown) => {
    if (ctx.signal.aborted) throw error;
    const found = await findServerPod(options, r.server, ctx);
    const ended = typeof found !== 'string' && found.state === 'failed' ? found.reason : null;
    const reason = ended ?? (error instanceof DriverError ? toSentence(error.message) : '');
    const message = `The server did not start with the new data. ${reason}`.trim();
    throw Object.assign(new DriverError('invalid', message), { cause: error });
  });
  return started;
}

/** @throws DriverError invalid where the server ends with these data */
async function startWith(
  options: ClaimOptions,
  r: PodReplacement,
  claim: string,
  ctx: DriverContext,
): Promise<ServerPod> {
  const starting = r.loader ?? r;
  const server = { ...starting.server, running: true };
  for (;;) {
    checkpoint(ctx);
    const found = await ensureServerPod(options, server, starting.program(claim), ctx);
    if (isPodCurrent(found) && found.state === 'failed')
      throw new DriverError('invalid', `The server did not start with the new data. ${found.reason ?? ''}`.trim());
    if (isPodCurrent(found) && found.address !== null) {
      const error = await r.verify(found).then(
        () => null,
        (reason: unknown) => reason,
      );
      if (error === null) return found;
      if (!(error instanceof NotReady)) throw error;
    }
    await sleep(POLL_MS);
  }
}

/** With what fills it. The server has its own all the time. */
async function discardClaim(
  options: ClaimOptions,
  server: DatabaseServer,
  name: string,
  ctx: DriverContext,
): Promise<void> {
  const place = { namespace: serverObjectMetadata(options.prefix, server).namespace, name };
  await options.client.remove(jobs, place, { propagation: 'Background' }, ctx);
  await options.client.remove(persistentVolumeClaims, place, {}, ctx);
}

/** Without old data the server goes: its database has failed. */
async function putBack(
  options: ClaimOptions,
  r: PodReplacement,
  before: string | null,
  ctx: DriverContext,
): Promise<void> {
  if (before === null) return;
  const found = await ensureServerPod(options, r.server, r.program(before), ctx);
  await writePodNote(options, found, 'replacing', null, ctx);
  await removeOtherClaims(options, r.server, before, ctx);
}

async function annotate(
  options: ClaimOptions,
  server: DatabaseServer,
  name: string,
  annotations: Record<string, string | null>,
  ctx: DriverContext,
): Promise<void> {
  const { namespace } = serverObjectMetadata(options.prefix, server);
  await options.client.patch(persistentVolumeClaims, { namespace, name }, { metadata: { annotations } }, ctx);
}
