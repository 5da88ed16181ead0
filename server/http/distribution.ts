// The tokens of a Distribution server and its notifications, at the address of the API: every process of the API takes
// them, so that images are pushed and pulled while the worker is away.
import express, { type RequestHandler, type Router } from 'express';
import { openDistributionRequests, type DistributionRequests } from '../../drivers/distribution/requests';
import { registryContent } from '../../models/registries/registry/content';
import { RegistryError, respondWithError } from '../../engines/registry';
import { clientAddress } from '../platform/context';
import type { Platform } from '../platform/platform';
import { openRegistryTokens, registryTokenOptions } from '../platform/registry_tokens';

/** With `/token` and `/events` behind it, as they stand in configurations of Distribution servers. */
const PATH = '/registry';

interface DistributionRoutes {
  router: Router;
  /** Writes down which robots were used. */
  close(): Promise<void>;
}

/** @param distributionUrl of the server that has the images */
export function distributionRoutes(platform: Platform, distributionUrl: string): DistributionRoutes {
  const { config, database, log } = platform;
  const { distributionEventsKey: eventsKey } = config;
  let opening: Promise<{ serve: DistributionRequests; close(): Promise<void> }> | null = null;
  const open = async (): Promise<{ serve: DistributionRequests; close(): Promise<void> }> => {
    const content = registryContent(database);
    const tokens = await openRegistryTokens(platform, content, registryTokenOptions(config));
    const failed = (message: string, error: unknown): void => log.error({ err: error }, message);
    const serve = openDistributionRequests({ distributionUrl, eventsKey, content, tokens, log: failed });
    return { serve, close: () => tokens.close() };
  };
  const handler: RequestHandler = async (request, response) => {
    // The first one opens them; without the database the next one tries again.
    const opened = await (opening ??= open()).catch((error: unknown) => {
      opening = null;
      log.error({ err: error }, 'the key of registry tokens cannot be read');
      return null;
    });
    const address = clientAddress(request, config.trustProxy);
    const path = request.path.slice(PATH.length);
    if (opened) return opened.serve(request, response, { path, address });
    respondWithError(response, new RegistryError('UNKNOWN', 'The platform has failed.'));
  };
  const router = express.Router().all([`${PATH}/token`, `${PATH}/events`], handler);
  return { router, close: async () => (await opening?.catch(() => null))?.close() };
}
