// The last backup before a move to another machine: what writes is stopped first, so that nothing is missing in it.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../core/config';
import { Problem } from '../../core/errors';
import { own } from '../../core/outbound/client';
import { named } from '../../db/statement';
import { Application } from '../../models/applications/application';
import { startApplication, stopApplication } from '../../models/deployments/run_application';
import { readStopped, saveStopped } from '../backup/stopped_applications';
import { handOver } from '../backup/owner';
import { makePoint } from '../backup/point';
import type { Repository } from '../backup/repository';
import { CommandError } from '../command_error';
import type { BackupJournal } from '../platform/backup_journal';
import { saveSuccessor } from '../platform/installation_owner';
import type { Platform } from '../platform/platform';
import { inProject } from './open_project';

const STOPPED_WITHIN_MS = 5 * 60_000;
const ANSWER_WITHIN_MS = 3_000;
const POLL_MS = 250;

interface Found {
  id: string;
  project_id: string;
  account_id: string;
  project_name: string;
}

const OF_PROJECT = `select a.id, a.project_id, p.account_id, p.name as project_name
  from applications a join projects p on p.id = a.project_id
  where a.deleted_at is null`;
const RUNNING = named(`${OF_PROJECT} and a.status in ('running', 'crashed', 'starting', 'restarting') order by a.id`);
const STOPPED = named(`${OF_PROJECT} and a.status = 'stopped' and a.id = any($1) order by a.id`);
const LIVE = named(
  'select count(*)::int as count from instances where deleted_at is null and application_id = any($1)',
);

/**
 * Makes a backup that has everything: applications are stopped first, and the service is before files are read.
 * @throws CommandError: called again, it goes on
 */
export async function makeFinalPoint(
  platform: Platform,
  repository: Repository,
  print: (line: string) => void,
): Promise<BackupJournal> {
  const { config } = platform;
  const begun = async (): Promise<void> => {
    print('stopping applications …');
    await stopApplications(platform);
  };
  const beforeFiles = async (): Promise<void> => {
    print('stopping the service …');
    await saveSuccessor(config, { hostname: 'the machine to which it moves', at: new Date().toISOString() });
    await serviceEnds(config);
  };
  try {
    const journal = await makePoint(platform, { repository, print, begun, beforeFiles });
    await handOver(config);
    return journal;
  } catch (error) {
    if ((await readStopped(config)).length)
      print('Applications are stopped: call this again, or `platform backup take-over` to go on here.');
    throw error;
  }
}

async function stopApplications(platform: Platform): Promise<void> {
  const running = await platform.database.query<Found>(RUNNING, []);
  // Before they stop: a call that was cut off has to know them.
  const ids = [...new Set([...(await readStopped(platform.config)), ...running.map(({ id }) => id)])];
  await saveStopped(platform.config, ids);
  for (const found of running)
    await inProject(platform, found, async (ctx) => {
      await stopApplication(ctx, await Application.forUpdate(ctx, found.id));
    });
  for (const end = Date.now() + STOPPED_WITHIN_MS; await isLive(platform, ids); await sleep(POLL_MS))
    if (Date.now() > end) throw new CommandError('applications do not stop: does the service run?');
}

async function isLive({ database }: Platform, ids: string[]): Promise<boolean> {
  const [row] = await database.query<{ count: number }>(LIVE, [ids]);
  return (row?.count ?? 0) > 0;
}

/** It finds the note of its successor; under systemd it is started again, and only says so. */
async function serviceEnds({ host, port }: Config): Promise<void> {
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/healthz`;
  for (const end = Date.now() + STOPPED_WITHIN_MS; ; await sleep(POLL_MS)) {
    const answer = await own(url, { within: { ms: ANSWER_WITHIN_MS, of: 'response' } }).catch(() => null);
    if (answer === null || answer.status === 503) return;
    if (Date.now() > end) throw new CommandError('the service does not stop: stop it, and call this again');
  }
}

/** Those that were stopped for the move. @returns what has to be done by hand */
export async function startStopped(platform: Platform, ids: readonly string[]): Promise<string[]> {
  const notes: string[] = [];
  for (const found of await platform.database.query<Found>(STOPPED, [ids]))
    await inProject(platform, found, async (ctx) => {
      await startApplication(ctx, await Application.forUpdate(ctx, found.id));
    }).catch((error: unknown) => {
      if (!(error instanceof Problem)) throw error;
      notes.push(`The application ${found.id} has to be started by hand: ${error.detail}`);
    });
  return notes;
}
