import { createRequire } from 'node:module';
import { imagesOfApplication } from '../../models/deployments/release_image';
import { findPlatformRegistry } from '../../models/registries/registry/platform_registry';
import type * as OfTokens from '../platform/registry_tokens';
import { CommandError } from '../command_error';
import { type Command } from './command';
import { inDatabase } from './open';
import { noteAtTerminal } from './terminal_activity';

const load = createRequire(__filename);
const LOGIN_SECONDS = 15 * 60;

export const commands: Command[] = [
  {
    name: 'release-image list',
    summary: 'List the images of the releases of an application that are kept (RELEASE_IMAGES), newest first.',
    argument: 'application id',
    run: async ({ argument }) => ({
      rows: await inDatabase(async (ctx) => {
        const host = ctx.config.registryHost;
        const found = await imagesOfApplication(ctx.sql, argument);
        return found.map(({ number, status, image, created_at }) => ({
          ...{ deployment: number, status, image: `${host}/${image}`, created_at },
        }));
      }),
    }),
  },
  {
    name: 'release-image login',
    summary: 'Create a login that pulls the release images of one application, and nothing else, for 15 minutes.',
    argument: 'application id',
    async run({ argument }) {
      const { repository, login } = await inDatabase(async (ctx) => {
        const registry = await findPlatformRegistry(ctx.sql);
        if (registry === null || (await imagesOfApplication(ctx.sql, argument)).length === 0)
          throw new CommandError(`there is no release image of an application ${argument}`);
        const name = `${registry}/${argument}`;
        const resource = { type: 'application', id: argument, name: null };
        await noteAtTerminal(ctx.sql, { action: 'release_image.login_created', resource });
        // Not before: most of the time of a command goes into loading it.
        const { pullLoginOf } = load('../platform/registry_tokens') as typeof OfTokens;
        return { repository: `${ctx.config.registryHost}/${name}`, login: await pullLoginOf(ctx, name, LOGIN_SECONDS) };
      });
      return { rows: [{ repository, expires_in_seconds: LOGIN_SECONDS }], secrets: { ...login } };
    },
  },
];
