// The installation for its operators: names, certificates, upgrades.
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import type {
  DomainChoice,
  DomainPlan,
  DomainProgress,
  InstallationControl,
  UpgradeProgress,
} from '../../core/catalog/installation_control';
import { mintSecret, sha256 } from '../../core/accounts/tokens';
import { named } from '../../db/statement';
import { noteChange } from '../base/row';
import { loadInstallation } from '../identity/installation';
import { requireOperator } from '../identity/operator';
import { wrongField } from '../identity/user';
import { certificateFigures } from './certificate/expiry_warnings';

// Of two who press a button at once, the second finds what the first has begun.
const LOCK = named(`select pg_advisory_xact_lock(hashtext('platform-api installation'))`);

export interface InstallationState {
  base_url: string;
  apps_domain: string;
  certificates: { hostname: string; expires_at: string | null; reason: string | null; needs_attention: boolean }[];
  expiring_certificates: number;
  upgrade_obstacle: string | null;
  setup_obstacle: string | null;
  version_before: string | null;
  upgrade: UpgradeProgress | null;
}

/** @throws role_not_permitted */
export async function loadInstallationState(ctx: Context): Promise<InstallationState> {
  await requireOperator(ctx);
  const { own, counts } = await certificateFigures(ctx.sql);
  const control = installationControl(ctx);
  return {
    base_url: ctx.config.baseUrl,
    apps_domain: ctx.config.appsDomain,
    certificates: own.map(({ id, expires_at, reason, needs_warning }) => ({
      ...{ hostname: id, expires_at, reason, needs_attention: needs_warning },
    })),
    expiring_certificates: counts
      .filter(({ kind, state }) => kind !== 'platform' && state === 'expiring')
      .reduce((sum, { count }) => sum + count, 0),
    upgrade_obstacle: control.upgradeObstacle(),
    setup_obstacle: control.setupObstacle(),
    version_before: control.versionBefore(),
    upgrade: control.lastUpgrade(),
  };
}

/**
 * Only to the release that the signed index has named: a text of the caller leads nowhere else.
 * @throws role_not_permitted, validation_failed on `version`, invalid_state, engine_unavailable
 */
export async function upgradeInstallation(ctx: Context, version: string): Promise<InstallationState> {
  await requireOperator(ctx);
  const { newer_release } = await loadInstallation(ctx);
  if (newer_release?.version !== version) throw wrongField('version', 'is not the newer release of this installation');
  await ctx.sql.query(LOCK, []);
  await installationControl(ctx).beginUpgrade(newer_release.version);
  noteChange(ctx, { type: 'installation', id: 'installation', name: version });
  return loadInstallationState(ctx);
}

/** @throws role_not_permitted, validation_failed on `version`, invalid_state, engine_unavailable */
export async function rollBackInstallation(ctx: Context, version: string): Promise<InstallationState> {
  await requireOperator(ctx);
  const control = installationControl(ctx);
  if (control.versionBefore() !== version) throw wrongField('version', 'is not the release before');
  await ctx.sql.query(LOCK, []);
  await control.beginRollback();
  noteChange(ctx, { type: 'installation', id: 'installation', name: version });
  return loadInstallationState(ctx);
}

/** @throws role_not_permitted, validation_failed on a field of the input */
export async function planSetup(ctx: Context, input: DomainChoice): Promise<DomainPlan> {
  await requireOperator(ctx);
  return installationControl(ctx).planSetup(input);
}

/** @throws role_not_permitted, validation_failed, invalid_state, engine_unavailable */
export async function startSetup(ctx: Context, input: DomainChoice): Promise<{ token: string; address: string }> {
  await requireOperator(ctx);
  await ctx.sql.query(LOCK, []);
  const token = mintSecret('set_');
  const address = await installationControl(ctx).beginSetup(input, sha256(token));
  noteChange(ctx, { type: 'installation', id: 'installation', name: address });
  return { token, address };
}

/** @throws not_found */
export async function setupProgress(ctx: Context, token: string): Promise<DomainProgress> {
  const found = await installationControl(ctx).setupProgress(sha256(token));
  if (found === null) throw problem('not_found', 'There is no setup with this token.');
  return found;
}

function installationControl(ctx: Context): InstallationControl {
  if (ctx.installation === null) throw problem('engine_unavailable');
  return ctx.installation;
}
