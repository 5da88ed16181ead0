// An installation that a restore elsewhere has taken over does no work here, until the operator says so.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../core/config';
import { StartupError } from '../core/startup_error';
import { NOSNIFF } from '../rest/send_text';
import type * as OfOwner from './backup/owner';
import type * as OfRepository from './backup/wal_repository';
import { listenOrFail } from './http/listen';
import { readOwnId, readSuccessor, takenOverText, type Successor } from './platform/installation_owner';

const CHECK_EVERY_MS = 1_000;

const FOUND_WITHIN_MS = 10_000;
const load = createRequire(__filename);

/**
 * Who has taken over; null: nobody, as far as is known. A machine that was off meanwhile reads the repository before it
 * does what the other one does already.
 */
export async function findSuccessor(config: Config): Promise<Successor | null> {
  if (config.resticRepository === null) return null;
  const known = readSuccessor(config);
  if (known !== null || readOwnId(config) === null) return known;
  const { checkOwner } = load('./backup/owner') as typeof OfOwner;
  const { openWalRepository } = load('./backup/wal_repository') as typeof OfRepository;
  const checking = Promise.resolve().then(() => checkOwner(config, openWalRepository(config)));
  // A repository that does not answer says nothing: backups fail then, which is told.
  return Promise.race([checking.catch(() => null), sleep(FOUND_WITHIN_MS, null, { ref: false })]);
}

/** Resolves when the installation is found to be taken over. */
export async function takenOver(config: Config): Promise<Error> {
  for (;;) {
    const successor = config.resticRepository === null ? null : readSuccessor(config);
    if (successor !== null) return new StartupError(takenOverText(successor));
    await sleep(CHECK_EVERY_MS, undefined, { ref: false });
  }
}

/**
 * Says why at the port of the API, until a signal comes.
 * @param command what was started: the service, or a worker, which has no port
 * @throws StartupError in a worker
 */
export async function standStill(config: Config, sentence: string, command: string): Promise<void> {
  if (command !== 'npm start') throw new StartupError(sentence);
  const head = { ...NOSNIFF, 'Content-Type': 'text/plain; charset=utf-8', Connection: 'close' };
  const body = JSON.stringify({ status: 'not_ready', reasons: [sentence] });
  const server = createServer((request, response) => {
    if (request.url !== '/readyz') return void response.writeHead(503, head).end(`${sentence}\n`);
    response.writeHead(503, { ...head, 'Content-Type': 'application/json' }).end(body);
  });
  await listenOrFail(server, config);
  process.stderr.write(`platform-api: ${sentence}\n`);
}
