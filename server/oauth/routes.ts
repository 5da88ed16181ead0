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
import { clientAddress } from '../platform/context';
import type { Platform } from '../platform/platform';
import type { Core } from '../../resolvers';
import { asProblem } from '../../rest/problem';
import { sendFormPage } from '../http/plain_page';
import { refuseRequest } from '../http/raw_request';
import { wasGuess } from './guesses';
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

/** Guesses are limited as for API keys: rejected requests count per address. */
async function answer(
  platform: Platform,
  opened: () => ReturnType<typeof openAuthorisationServer>,
  request: Request,
  response: Response,
): Promise<void> {
  const bucket = `oauth ${clientAddress(request, platform.config.trustProxy)}`;
  const { attempts } = platform;
  try {
    const refusal = attempts.refusal(bucket);
    if (refusal) throw refusal;
    const server = await opened();
    await server.answer(request, response);
    if (wasGuess(request)) attempts.count(bucket);
  } catch (error) {
    if (FOR_PROGRAMS.includes(request.path)) return refuseRequest(platform, response, request.path, error);
    showFailure(platform, response, error);
  }
}

function showFailure(platform: Platform, response: Response, error: unknown): void {
  const failure = asProblem(error);
  const request_id = response.getHeader('X-Request-Id');
  if (failure !== error) platform.log.error({ err: error, request_id }, 'request failed');
  if (!response.headersSent) sendFormPage(response, failure.status, 'This did not work', failure.detail);
}
