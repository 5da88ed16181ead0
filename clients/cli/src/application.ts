// All commands.
import { buildApplication, buildRouteMap, text_en, type Application } from '@stricli/core';
import type { Shell } from './command';
import { open, ps, restart, scale, status } from './commands/application';
import { apps, cancel, deployments, remove } from './commands/applications';
import { approve } from './commands/approve';
import { attach, attachments, detach } from './commands/attach';
import { bin } from './commands/bin';
import { completion } from './commands/completion';
import { db } from './commands/databases';
import { deploy, promote, rollback } from './commands/deploy';
import { doctor } from './commands/doctor';
import { domains } from './commands/domains';
import { env } from './commands/env';
import { importStack } from './commands/import_stack';
import { init, link } from './commands/link';
import { login, logout, whoami } from './commands/login';
import { logs } from './commands/logs';
import { metrics } from './commands/metrics';
import { previews } from './commands/previews';
import { members, projects } from './commands/projects';
import { protect } from './commands/protect';
import { exec, run, ssh } from './commands/run';
import { schedules } from './commands/schedules';
import { apply, exportCommand, plan } from './commands/stack';
import { buckets, keys } from './commands/storage';
import { undo } from './commands/undo';
import { up } from './commands/up';
import { volumes } from './commands/volumes';
import { apiRoutes } from './operations/api';

const ROUTES = {
  ...{ login, logout, whoami, link, init, doctor, apps, projects, members, delete: remove },
  ...{ up, deploy, deployments, cancel, rollback, promote, previews },
  ...{ plan, apply, export: exportCommand, import: importStack },
  ...{ status, open, logs, metrics, ps, scale, restart, run, exec, ssh, schedules, env, domains },
  ...{ db, volumes, attach, detach, attachments, buckets, keys, protect, bin, undo, approve, completion },
};

/** Groups of commands that list where nothing more is said: `svc db` is `svc db ls`. */
export const LISTED = new Set([
  'projects',
  'previews',
  'schedules',
  'env',
  'domains',
  'db',
  'volumes',
  'buckets',
  'keys',
  'approve',
  'bin',
]);

const CLOSE = { threshold: 3, weights: { insertion: 1, deletion: 2, substitution: 2, transposition: 0 } };

/** @param wantsApi whether the commands of `api` are needed, which take milliseconds to make */
export function buildSvc(wantsApi: boolean): Application<Shell> {
  const routes = { ...ROUTES, ...(wantsApi && { api: apiRoutes() }) };
  const root = buildRouteMap<string, Shell>({ routes, docs: { brief: 'Deploys and runs applications on a platform' } });
  return buildApplication(root, {
    name: 'svc',
    versionInfo: { currentVersion: SVC_VERSION },
    scanner: {
      caseStyle: 'allow-kebab-for-camel',
      allowArgumentEscapeSequence: true,
      // Two letters in another order, one too many, one that is missing or another. Names of operations are longer.
      ...(!wantsApi && { distanceOptions: CLOSE }),
    },
    documentation: { caseStyle: 'convert-camel-to-kebab', onlyRequiredInUsageLine: true, disableAnsiColor: true },
    localization: {
      text: {
        ...text_en,
        noCommandRegisteredForInput: ({ input, corrections }) =>
          [
            `There is no command \`${input}\`.`,
            corrections.length
              ? `Did you mean ${corrections.map(toOperationId).join(' or ')}?`
              : 'See svc help for all commands.',
          ].join(' '),
        exceptionWhileParsingArguments: (error) =>
          `${messageOf(error).replace(/^No flag registered for/, 'There is no flag')}. See --help.`.replace(
            '.. See',
            '. See',
          ),
      },
    },
  });
}

/** Names of operations have no hyphens. */
const toOperationId = (name: string): string => name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
