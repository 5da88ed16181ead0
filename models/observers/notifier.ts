import { isDeepStrictEqual } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { mintId } from '../../core/ids';
import type {
  CreateNotifierInput,
  NotifierConfig,
  NotifierDelivery,
  NotifierTest,
  NotifierType,
  UpdateNotifierInput,
} from '../../schema/types';
import type { Values } from '../../db/table';
import { named } from '../../db/statement';
import type { Bin } from '../base/bin';
import { removeToBin } from '../base/purge';
import { Resource } from '../base/resource';
import { endOfTest, queueTest, withdrawTest } from './notification/outbox';
import { mergeConfig, publicConfigOf, type SealedConfig } from './notifier/config';
import { sealedColumns } from '../base/sealed_columns';

/** A notification channel. Its target is sealed; `config` is the part that may be shown. */
export class Notifier extends Resource {
  static readonly table = 'notifiers';
  static readonly kind = 'notifier';
  static readonly idPrefix = 'ntf';
  static override readonly projectChild = 'notifiers';
  static override readonly filters = { type: 'type = ?' };
  static override readonly sorts = ['name'];
  static override readonly quotas = [{ resource: 'notifiers' }];
  static override readonly bin: Bin<Notifier> = {
    nameFormat: 'label',
    async restore({ sql }, { id, project_id }, memo) {
      await sql.query(ADD_TO_OBSERVERS, [id, project_id, (memo as { observers: string[] }).observers]);
      return [];
    },
  };

  declare name: string;
  declare type: NotifierType;
  declare config: NotifierConfig;
  declare sealed_config: string;
  declare enabled: boolean;
  declare last_delivery: NotifierDelivery | null;

  /** @throws validation_failed, engine_unavailable for email where mail is switched off, quota_exceeded */
  static async create(ctx: Context, input: CreateNotifierInput): Promise<Notifier> {
    const config = mergeConfig(input.type, null, input.config, ctx.config);
    if (input.type === 'email') requireMail(ctx);
    const id = mintId(Notifier.idPrefix);
    return Notifier.insert(ctx, {
      id,
      name: input.name,
      type: input.type,
      enabled: input.enabled ?? true,
      ...configColumns(ctx, id, config),
    });
  }

  /** @throws validation_failed */
  async change(ctx: Context, input: UpdateNotifierInput): Promise<this> {
    const { config, ...plain } = input;
    const present = openConfig(ctx, this);
    const merged = config && mergeConfig(this.type, present, config, ctx.config);
    const isSame = !merged || isDeepStrictEqual(merged, present);
    return this.update(ctx, { ...plain, ...(!isSame && configColumns(ctx, this.id, merged)) });
  }

  /** Observers that name it go on without it; messages that are on their way are given up. */
  async destroy(ctx: Context): Promise<void> {
    const watching = await ctx.sql.query<{ id: string }>(REMOVE_FROM_OBSERVERS, [this.id, this.project_id]);
    await ctx.sql.query(GIVE_UP, [this.id]);
    await removeToBin(ctx, this, { memo: { observers: watching.map(({ id }) => id) } });
  }

  /**
   * Sends a test message and waits for its end, for `test`. The worker sends it; so the message is a row that is
   * committed before the request goes on (docs/decisions/0003). Null where there is no such notifier, or it is switched
   * off.
   */
  static async probe(ctx: Context, id: string): Promise<NotifierTest | null> {
    const notifier = await Notifier.get(ctx, id).catch(() => null);
    if (!notifier?.enabled) return null;
    const seq = await ctx.transact((inner) => queueTest(inner.sql, notifier, ctx.idempotency_scope));
    const deadline = Date.now() + ctx.config.operationWaitSeconds * 1000;
    for (;;) {
      const end = await endOfTest(ctx.sql, seq);
      if (!end) throw problem('not_found');
      const { status, status_code, error, duration_ms } = end;
      if (status !== 'pending') return { status, status_code, error, duration_ms: duration_ms ?? 0 };
      if (Date.now() >= deadline || ctx.signal.aborted) return late(ctx, seq);
      await sleep(POLL_MS);
    }
  }

  override revertState(ctx: Pick<Context, 'secrets'>): Values {
    return { ...(this as object), config: openConfig(ctx, this) };
  }

  /** @throws invalid_state where it is switched off */
  tested(ctx: Context, test: NotifierTest | null): NotifierTest {
    if (!test)
      throw problem('invalid_state', 'The notifier is switched off. Set `enabled` to true first.', {
        resource_status: 'disabled',
        allowed_statuses: ['enabled'],
      });
    ctx.activity.resource = { type: Notifier.kind, id: this.id, name: this.name, project_id: this.project_id };
    return test;
  }
}

const POLL_MS = 50;
const REMOVE_FROM_OBSERVERS = named(
  `update observers set notifier_ids = array_remove(notifier_ids, $1), version = version + 1,
    updated_at = greatest(now(), updated_at) where notifier_ids @> array[$1]::text[] and project_id = $2 returning id`,
);
const ADD_TO_OBSERVERS = named(
  `update observers set notifier_ids = array_append(notifier_ids, $1), version = version + 1,
    updated_at = greatest(now(), updated_at)
    where project_id = $2 and id = any($3) and not notifier_ids @> array[$1]::text[]`,
);
const GIVE_UP = named(
  `update notifications set status = 'failed', error = 'The notifier was deleted.', fence = fence + 1
    where notifier_id = $1 and status = 'pending'`,
);

async function late(ctx: Context, seq: number): Promise<NotifierTest> {
  const seconds = ctx.config.operationWaitSeconds;
  const error =
    `The message was not sent within ${seconds} seconds: ` +
    'no worker of the platform took it, or the receiver is slow.';
  await withdrawTest(ctx.sql, seq, error);
  return { status: 'failed', status_code: null, error, duration_ms: seconds * 1000 };
}

function requireMail(ctx: Context): void {
  if (ctx.config.smtpUrl !== null || ctx.config.smtpPorts.length) return;
  throw problem(
    'engine_unavailable',
    'This installation sends no mail: `SMTP_PORTS` is `0`, and `SMTP_URL` is not set.',
  );
}

/** Where a notifier sends. */
export function openConfig(
  { secrets }: Pick<Context, 'secrets'>,
  { id, sealed_config }: { id: string; sealed_config: string },
): SealedConfig {
  return JSON.parse(secrets.open(sealed_config, sealedColumns.notifierConfig.contextOf(id))) as SealedConfig;
}

function configColumns({ secrets }: Context, id: string, config: SealedConfig): Values {
  return {
    config: publicConfigOf(config),
    sealed_config: secrets.seal(JSON.stringify(config), sealedColumns.notifierConfig.contextOf(id)),
    events: config.events ?? [],
  };
}
