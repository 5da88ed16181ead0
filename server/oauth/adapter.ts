// The storage adapter of oidc-provider, over models/identity/oauth/records.ts.

import type { Context } from '../../core/context';
import { endConnection, extendConnection } from '../../models/identity/oauth/connection';
import {
  consumeRecord,
  destroyRecord,
  destroyRecordsOfGrant,
  findRecord,
  findRecordByUserCode,
  isPolledTooSoon,
  lockTokenFamily,
  mayRepeatRefresh,
  saveRecord,
} from '../../models/identity/oauth/records';
import type { Adapter, AdapterConstructor, AdapterPayload } from './types';

/** Tokens whose value is not stored: a lookup by the value puts it into the result. */
const NEVER_STORED = new Set(['AccessToken', 'RefreshToken', 'AuthorizationCode']);

export interface Surroundings {
  /** The context of the request that is being answered: in a transaction where it gives out tokens. */
  context(): Context;
  /** Whether the request issues tokens, so that records it finds are consumed. */
  isSpending(): boolean;
  /** The error for a device that polls too fast. */
  slowDown(): Error;
}

/** The class that oidc-provider makes one of for each of its models. */
export function adapterClass(around: Surroundings): AdapterConstructor {
  return class OauthAdapter implements Adapter {
    constructor(private readonly kind: string) {}

    async upsert(id: string, payload: AdapterPayload, expiresIn?: number): Promise<void> {
      const ctx = around.context();
      const { jti, ...rest } = payload;
      const stored = NEVER_STORED.has(this.kind) ? rest : { ...rest, jti };
      await saveRecord(ctx, this.kind, id, stored, expiresIn ?? null);
      if (this.kind === 'AccessToken' && payload.grantId) await extendConnection(ctx.sql, payload.grantId);
    }

    async find(id: string): Promise<AdapterPayload | undefined> {
      const ctx = around.context();
      const spends = around.isSpending();
      if (spends && this.kind === 'DeviceCode' && (await isPolledTooSoon(ctx.sql, id))) throw around.slowDown();
      if (spends && this.kind === 'RefreshToken') return this.findRefreshToken(id);
      const found = await findRecord(ctx, this.kind, id, spends && this.kind !== 'Client' ? 'lock' : 'read');
      return found && NEVER_STORED.has(this.kind) ? { ...found, jti: id } : found;
    }

    private async findRefreshToken(id: string): Promise<AdapterPayload | undefined> {
      const ctx = around.context();
      await lockTokenFamily(ctx.sql, id);
      const found = await findRecord(ctx, this.kind, id, 'read');
      if (!found) return undefined;
      const { consumed, ...fresh } = found;
      const isUsed = consumed !== undefined && !(await mayRepeatRefresh(ctx.sql, id));
      return { ...(isUsed ? found : fresh), jti: id };
    }

    async findByUserCode(userCode: string): Promise<AdapterPayload | undefined> {
      return findRecordByUserCode(around.context(), this.kind, userCode);
    }

    /** Sessions are found by their cookie only: each authorisation begins a new one. */
    async findByUid(): Promise<undefined> {
      return undefined;
    }

    async consume(id: string): Promise<void> {
      const ctx = around.context();
      const grantId = await consumeRecord(ctx.sql, this.kind, id);
      if (grantId) await ctx.forget({ key_id: grantId });
    }

    async destroy(id: string): Promise<void> {
      const ctx = around.context();
      if (this.kind === 'Grant') await endConnection(ctx, id);
      const grantId = await destroyRecord(ctx.sql, this.kind, id);
      if (grantId) await ctx.forget({ key_id: grantId });
    }

    async revokeByGrantId(grantId: string): Promise<void> {
      const ctx = around.context();
      await destroyRecordsOfGrant(ctx.sql, this.kind, grantId);
      await ctx.forget({ key_id: grantId });
    }
  };
}
