// The steps that change what runs, and what undoes them.
import { existsSync, readdirSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { discardPartialRestore, restoreEmbedded } from '../platform/embedded/base_backup';
import { restartService } from '../setup/service_unit';
import { CommandError } from '../command_error';
import { discardReplaced, backupName, backupsDirectory, replacedDirectory } from './control_backup';
import { healthyParts, isReady } from './health';
import {
  currentVersion,
  installedVersions,
  isReleaseInUse,
  releaseDirectory,
  replaceLink,
  versionBefore,
} from './installation';
import { doctorOf, runReleaseProgram, syncFileSystem } from './programs';
import { lastLine, serviceState, stopService } from './service_unit';
import { targetOf, type Job, type Step } from './step';

/** From the restart until every part is healthy, or it goes back. */
const HEALTHY_WITHIN_MS = 90_000;
/** A start that ends after it was ready shows itself in this time. */
const SETTLED_AFTER_MS = 10_000;
/** Of a service that systemd starts again and again. */
const RESTARTS_MAX = 3;
const POLL_MS = 200;
const SETTLING_POLL_MS = 1_000;
const STOPPED_WITHIN_MS = 60_000;

export const targetStep: Step = {
  name: 'target',
  title: 'ask the release before what it needs here',
  isDone: () => false,
  async run({ installation, journal }) {
    const version = versionBefore(installation);
    if (version === null) throw new CommandError(`no release before ${journal.from} is installed here`);
    journal.to = version;
    const found = await doctorOf(releaseDirectory(installation, version), version);
    const schema = found.find(({ check, status }) => check === 'migrations' && status === 'failed');
    if (schema && journal.restores === null) throw new CommandError(`${version} cannot run here: ${schema.detail}`);
  },
};

export const switchStep: Step = {
  name: 'switch',
  title: 'switch to the other release',
  isDone: () => false,
  run: (job) => switchTo(job, targetOf(job)),
  async undo(job) {
    const { installation, journal } = job;
    await switchTo(job, journal.from);
    const { command } = await serviceState();
    if (!isOf(command, releaseDirectory(installation, journal.from))) await restartService();
    const reason = await waitUntilHealthy(job, journal.from).then(
      () => null,
      (error: Error) => error.message,
    );
    if (reason !== null) throw new CommandError(`${journal.from} does not serve again: ${reason}`);
  },
};

/** With the units of systemd as that release has them. */
async function switchTo({ installation }: Job, version: string): Promise<void> {
  await replaceLink(path.join(installation.prefix, 'current'), version);
  await syncFileSystem(installation.prefix, 'the link');
  const script = path.join(releaseDirectory(installation, version), 'install.sh');
  await runReleaseProgram(script, ['--units'], `the units of ${version} could not be installed`);
}

/** Puts the backup in the place of the database while nothing runs. */
export const restoreStep: Step = {
  name: 'restore',
  title: 'stop the service and restore the control database',
  isDone: ({ journal }) => journal.restores === null,
  async run(job) {
    const { backup, data, replaced } = restoredPlaces(job);
    await stopService();
    await waitUntilGone(path.join(data, 'postmaster.pid'));
    await restoreEmbedded(backup, data, replaced);
    await syncFileSystem(data, 'the database');
  },
  async undo(job) {
    if (job.journal.restores === null) return;
    const { data, replaced } = restoredPlaces(job);
    await discardPartialRestore(data);
    if (!existsSync(replaced)) return;
    await stopService();
    await waitUntilGone(path.join(data, 'postmaster.pid'));
    await rm(data, { recursive: true, force: true });
    await rename(replaced, data);
  },
};

/** Also where a power cut has left no data directory, or a start has made an empty one since. */
function restoredPlaces(job: Job): { backup: string; data: string; replaced: string } {
  const { dataDir } = job.config;
  const backups = backupsDirectory(job.config);
  const backup = path.join(backups, backupName(job.journal.restores as string, targetOf(job)));
  const name = readdirSync(backup).find((one) => /^data-\d+$/.test(one)) as string;
  const replaced = replacedDirectory(job.config, job.journal.started_at);
  return { backup: path.join(backup, name), data: path.join(dataDir, 'postgres', name), replaced };
}

async function waitUntilGone(file: string): Promise<void> {
  for (const until = Date.now() + STOPPED_WITHIN_MS; existsSync(file); await sleep(POLL_MS))
    if (Date.now() > until) throw new CommandError('the embedded PostgreSQL does not stop');
}

export const restartStep: Step = {
  name: 'restart',
  title: 'restart the service',
  isDone: () => false,
  run: restartService,
};

export const watchStep: Step = {
  name: 'watch',
  title: 'wait until every part is healthy that was healthy before',
  isDone: () => false,
  run: (job) => waitUntilHealthy(job, targetOf(job)),
};

export const tidyStep: Step = {
  name: 'tidy',
  title: 'remove older releases and backups',
  isDone: () => false,
  async run(job) {
    const { installation, journal, config } = job;
    await discardReplaced(config);
    const kept = [journal.from, targetOf(job), currentVersion(installation)];
    const old = installedVersions(installation).filter((version) => !kept.includes(version));
    for (const directory of old.map((version) => releaseDirectory(installation, version))) {
      if (isReleaseInUse(directory)) journal.notes.push(`${path.basename(directory)} stays: programs of it still run.`);
      else await rm(directory, { recursive: true, force: true });
    }
  },
};

/** @throws CommandError with what is not healthy */
async function waitUntilHealthy(job: Job, version: string): Promise<void> {
  const { installation, config, journal } = job;
  const directory = releaseDirectory(installation, version);
  const until = Date.now() + HEALTHY_WITHIN_MS;
  const first = await serviceState();
  let settling: { pid: number; since: number } | null = null;
  let missing = [`${version} is not ready`];
  for (; Date.now() < until; await sleep(POLL_MS)) {
    const { pid, command, restarts } = await serviceState();
    if (restarts - first.restarts >= RESTARTS_MAX) throw await ended(version);
    if (settling !== null && settling.pid !== pid) {
      missing = [`${version} was ready, and ended`];
      settling = null;
    }
    if (!isOf(command, directory) || !(await isReady(config))) continue;
    const well = await healthyParts(config, journal.well);
    const lost = journal.well.filter((name) => !well.includes(name));
    if (lost.length) {
      missing = lost.map((name) => `${name} does not answer any more`);
      settling = null;
      continue;
    }
    settling ??= { pid, since: Date.now() };
    if (Date.now() - settling.since >= SETTLED_AFTER_MS) return;
    await sleep(SETTLING_POLL_MS);
  }
  throw new CommandError(`${missing.join(', ')} after ${HEALTHY_WITHIN_MS / 1000} seconds: ${await whatItSaid()}`);
}

function isOf(command: readonly string[], directory: string): boolean {
  return command.some((word) => word.startsWith(`${directory}/`));
}

async function ended(version: string): Promise<CommandError> {
  return new CommandError(`${version} ends again and again: ${await whatItSaid()}`);
}

async function whatItSaid(): Promise<string> {
  return (await lastLine()).replace(/^platform-api: /, '') || '`journalctl -u platform` says more';
}
