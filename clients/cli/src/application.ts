// All commands.
import { buildApplication, buildRouteMap, text_en, type Application } from '@stricli/core';
import type { Shell } from './command';
import { open, ps, restart, scale, status } from './commands/application';
import { completion } from './commands/completion';
import { db } from './commands/databases';
import { deploy, rollback } from './commands/deploy';
import { doctor } from './commands/doctor';
import { domains } from './commands/domains';
import { env } from './commands/env';
import { init, link } from './commands/link';
import { login, logout, whoami } from './commands/login';
import { logs } from './commands/logs';
import { previews } from './commands/previews';
import { run, ssh } from './commands/run';
import { schedules } from './commands/schedules';
import { buckets, keys } from './commands/storage';
import { up } from './commands/up';
import { apiRoutes } from './operations/api';

const ROUTES = {
  ...{ login, logout, whoami, link, init, doctor },
  ...{ up, deploy, rollback, previews },
  ...{ status, open, logs, ps, scale, restart, run, ssh, schedules, env, domains },
  ...{ db, buckets, keys, completion },
};

/** @param wantsApi whether the commands of `api` are needed, which take milliseconds to make */
export function buildSvc(wantsApi: boolean): Application<Shell> {
  const routes = { ...ROUTES, ...(wantsApi && { api: apiRoutes() }) };
  const root = buildRouteMap<string, Shell>({ routes, docs: { brief: 'Deploys and runs applications on a platform' } });
  return buildApplication(root, {
    name: 'svc',
    versionInfo: { currentVersion: SVC_VERSION },
    scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
    documentation: { caseStyle: 'convert-camel-to-kebab', onlyRequiredInUsageLine: true, disableAnsiColor: true },
    localization: {
      text: {
        ...text_en,
        noCommandRegisteredForInput: ({ input, corrections }) =>
          [
            `There is no command \`${input}\`.`,
            ...corrections.map((one) => `Did you mean ${toOperationId(one)}?`),
          ].join(' '),
        exceptionWhileParsingArguments: (error) => `${messageOf(error)}\nSee --help.`,
      },
    },
  });
}

/** Names of operations have no hyphens. */
const toOperationId = (name: string): string => name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
