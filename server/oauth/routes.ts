// Routes of the authorisation server, and the documents by which clients find it.
import express, { type Request, type Response, type Router } from 'express';
import { memoize } from '../../core/memoize';
import {
  OAUTH_PATHS,
  RESOURCE_METADATA_PATH,
  resourceMetadata,
  SERVER_METADATA_PATH,
  serverMetadata,
} from '../../core/accounts/oauth';
import { readSessionCookie } from '../../core/accounts/session_cookie';
import { addressBlock } from '../../core/protocols/addresses';
import { clientAddress } from '../platform/context';
import type { Platform } from '../platform/platform';
import type { Core } from '../../resolvers';
import { asProblem } from '../../rest/problem';
import { sendFormPage } from '../plain_page';
import { refuseRequest } from '../http/raw_request';
import { hostCookies } from './cookies';
import { isFailedAttempt } from './failed_attempt';
import { askPerson } from './interaction';
import { registerClient } from './registration';
import { openAuthorisationServer } from './provider';

const FORM_BYTES_MAX = 16 * 1024;
/** Answers for programs; the other endpoints answer people. */
const FOR_PROGRAMS: string[] = [OAUTH_PATHS.token, OAUTH_PATHS.revoke, OAUTH_PATHS.deviceAuthorization];

/** @param schema with the checks of the GraphQL face, by which people log in */
export function oauthRoutes(platform: Platform, schema: () => Core['graphqlSchema']): Router {
  const router = express.Router();
  const opened = memoize(() => openAuthorisationServer(platform));
  router.use(
    '/oauth',
    hostCookies(() => platform.config),
  );
  const describe = (document: typeof serverMetadata) => (_: Request, response: Response) =>
    void response.set('Cache-Control', 'public, max-age=300').json(document(platform.config));
  router.get(SERVER_METADATA_PATH, describe(serverMetadata));
  router.get(RESOURCE_METADATA_PATH, describe(resourceMetadata));
  router.all(
    `${OAUTH_PATHS.interaction}:uid`,
    express.urlencoded({ extended: false, limit: FORM_BYTES_MAX }),
    async (request, response) => {
      try {
        await askPerson(platform, schema(), await opened(), request, response);
      } catch (error) {
        showFailure(platform, response, error);
      }
    },
  );
  router.post(OAUTH_PATHS.register, (request, response, next) =>
    platform.config.oauthRegistration ? registerClient(platform, request, response) : next(),
  );
  router.all([...FOR_PROGRAMS, OAUTH_PATHS.authorize, `${OAUTH_PATHS.authorize}/:uid`], (request, response) =>
    answer(platform, opened, request, response),
  );
  router.all([OAUTH_PATHS.device, `${OAUTH_PATHS.device}/:uid`], (request, response) =>
    answer(platform, opened, request, response),
  );
  return router;
}

/** Authorisations that a program or browser begins: each writes rows, before anybody is known. */
const BEGINNINGS = [
  `POST ${OAUTH_PATHS.deviceAuthorization}`,
  `GET ${OAUTH_PATHS.authorize}`,
  `POST ${OAUTH_PATHS.authorize}`,
  `GET ${OAUTH_PATHS.device}`,
];
/** In multiples of RATE_LIMIT_FAILED_AUTH: an office has many people behind one address. */
const BEGINNINGS_TIMES = 2;

/** Beginnings and guesses are limited per address. */
async function answer(
  platform: Platform,
  opened: () => ReturnType<typeof openAuthorisationServer>,
  request: Request,
  response: Response,
): Promise<void> {
  const { attempts } = platform;
  const address = addressBlock(clientAddress(request, platform.config.trustProxy));
  const isOfCode = request.path === OAUTH_PATHS.device;
  try {
    if (BEGINNINGS.includes(`${request.method} ${request.path}`)) countBeginning(attempts, address);
    const bucket = isOfCode ? await codeBucket(platform, request, address) : `oauth ${address}`;
    // The code of a device is short enough to be guessed. Of tokens only the wrong ones are refused, as for API keys.
    const refusal = isOfCode && request.method === 'POST' && attempts.refusal(bucket);
    if (refusal) throw refusal;
    const server = await opened();
    await server.answer(request, response, () => attempts.refusal(bucket));
    if (isFailedAttempt(request)) attempts.count(bucket);
  } catch (error) {
    if (FOR_PROGRAMS.includes(request.path)) return refuseRequest(platform, response, request.path, error);
    showFailure(platform, response, error);
  }
}

function countBeginning(attempts: Platform['attempts'], address: string): void {
  const bucket = `oauth beginnings ${address}`;
  const refusal = attempts.refusal(bucket, 'Too many authorisations were started from this address.', BEGINNINGS_TIMES);
  if (refusal) throw refusal;
  attempts.count(bucket);
}

/** Who is logged in is not locked out by guesses of others at the same address. */
async function codeBucket({ config, identities }: Platform, { headers }: Request, address: string): Promise<string> {
  const secret = readSessionCookie(config, headers.cookie);
  const person = secret === null ? null : (await identities.ofSession(secret))?.user;
  return person ? `device codes ${person.id}` : `device codes ${address}`;
}

function showFailure(platform: Platform, response: Response, error: unknown): void {
  const failure = asProblem(error);
  const request_id = response.getHeader('X-Request-Id');
  if (failure !== error) platform.log.error({ err: error, request_id }, 'request failed');
  if (!response.headersSent) sendFormPage(response, failure.status, 'This did not work', failure.detail);
}
