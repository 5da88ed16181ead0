// Settings are a document in the application's row: only explicit values are stored, the defaults are defined here.
import { buildpackBuilderRows } from '../../core/catalog/catalogs';
import type { Context } from '../../core/context';
import { problem, validationFailed, type FieldError } from '../../core/errors';
import type { ApplicationSettings, UpdateApplicationSettingsInput } from '../../schema/types';
import type { Application } from './application';
import { hasOwnPorts } from '../reference/region';

type Settings = Omit<ApplicationSettings, 'application_id'>;
type Sections = { [Name in keyof Settings as Settings[Name] extends object ? Name : never]: Settings[Name] };

/** As in the row: sections and fields that were never set are missing. */
export type StoredSettings = Partial<Omit<Settings, keyof Sections>> & {
  [Name in keyof Sections]?: Partial<Sections[Name]>;
};

const DEFAULTS: Settings = {
  build: {
    builder: 'buildpack',
    buildpack_builder: null,
    buildpacks: [],
    dockerfile_path: 'Dockerfile',
    dockerfile_target: null,
    image: null,
    root_directory: '.',
    build_command: null,
    output_directory: null,
  },
  run: { release_command: null, shutdown_grace_seconds: 30 },
  http: { port: 8080, force_https: true, request_timeout_seconds: 60, sticky_sessions: false },
  health_check: {
    type: 'tcp',
    path: null,
    interval_seconds: 10,
    timeout_seconds: 5,
    failure_threshold: 3,
    grace_period_seconds: 60,
  },
  previews: { auto_create: false, expire_after_days: 7 },
  maintenance_mode: false,
  log_retention_days: 7,
};

/** Every setting of an application, defaults filled in. */
export function settingsOf(application: Application): ApplicationSettings {
  return { application_id: application.id, ...(merge(DEFAULTS, application.settings) as Settings) };
}

/**
 * Merges a change into the settings: sections field by field, lists whole. The rules hold for the result.
 * @throws validation_failed, reference_not_found
 */
export async function changeSettings(
  ctx: Context,
  application: Application,
  input: UpdateApplicationSettingsInput,
): Promise<Application> {
  const settings = merge(application.settings, input) as StoredSettings;
  const mistakes = [
    ...healthCheckMistakes((merge(DEFAULTS, settings) as Settings).health_check),
    ...outputMistakes((merge(DEFAULTS, settings) as Settings).build),
    ...(await portMistakes(ctx, application, input)),
  ];
  if (mistakes.length) throw validationFailed(mistakes);
  if (input.build?.buildpack_builder) await requireBuilder(ctx, input.build.buildpack_builder);
  await application.update(ctx, { settings });
  ctx.activity.changed_fields = pathsOf(input);
  return application;
}

type Document = Record<string, unknown>;

function merge(base: object, change: object): object {
  const result: Document = { ...base };
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined) continue;
    result[name] = isDocument(value) ? merge((result[name] ?? {}) as Document, value) : value;
  }
  return result;
}

function isDocument(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function healthCheckMistakes(check: Settings['health_check']): FieldError[] {
  const mistakes: FieldError[] = [];
  if (check.type === 'http' && check.path == null) {
    mistakes.push({ field: 'health_check.path', code: 'depends_on', detail: 'is needed by the type http' });
  }
  if (check.timeout_seconds >= check.interval_seconds) {
    mistakes.push({
      field: 'health_check.timeout_seconds',
      code: 'too_large',
      detail: `must be less than interval_seconds (${check.interval_seconds})`,
    });
  }
  return mistakes;
}

/** An image says itself what it runs. */
function outputMistakes({ builder, output_directory }: Settings['build']): FieldError[] {
  if (output_directory == null || builder === 'buildpack') return [];
  const detail =
    'needs build.builder `buildpack`: a Dockerfile says itself what runs. ' +
    'Set build.output_directory to null, or the builder to `buildpack`';
  return [{ field: 'build.output_directory', code: 'depends_on', detail }];
}

/** Accepts the port that responses show, so that a client can send back what it read. */
async function portMistakes(
  ctx: Context,
  application: Application,
  { http }: UpdateApplicationSettingsInput,
): Promise<FieldError[]> {
  const isSame = http?.port === undefined || http.port === settingsOf(application).http.port;
  if (isSame || (await hasOwnPorts(ctx)) !== false) return [];
  const detail =
    'needs instances with networks of their own, which this host does not give: the program must listen on the port ' +
    'that the PORT variable names';
  return [{ field: 'http.port', code: 'depends_on', detail }];
}

async function requireBuilder(ctx: Context, id: string): Promise<void> {
  const builders = buildpackBuilderRows(await ctx.catalogs.facts());
  if (builders.some((builder) => builder.id === id)) return;
  throw problem('reference_not_found', 'build.buildpack_builder names no builder of this platform.', {
    field: 'build.buildpack_builder',
  });
}

/** The dotted names of what a body sets: they go into the activity, values never do. */
function pathsOf(document: object, path = ''): string[] {
  return Object.entries(document).flatMap(([name, value]) =>
    isDocument(value) ? pathsOf(value, `${path}${name}.`) : [path + name],
  );
}
