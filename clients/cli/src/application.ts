// All commands.
import { buildApplication, buildRouteMap, text_en, type Application } from '@stricli/core';
import type { Shell } from './command';
import { login, logout, whoami } from './commands/login';
import { apiRoutes } from './operations/api';

/** @param wantsApi whether the commands of `api` are needed, which take milliseconds to make */
export function buildSvc(wantsApi: boolean): Application<Shell> {
  const routes = {
    ...{ login, logout, whoami },
    ...(wantsApi && { api: apiRoutes() }),
  };
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
