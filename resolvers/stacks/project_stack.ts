import type { NestedOperation } from '../../contract/nested';
import { stackOperations, type StackModels } from '../../contract/stack/plan';
import { importStack } from '../../contract/stack/import/import_stack';
import { prices } from '../../core/catalog/catalogs';
import { problem } from '../../core/errors';
import { requiresApproval } from '../../models/approvals/approval/desk';
import { wouldPauseKey } from '../../models/approvals/key_brake';
import { importCatalog, lockStack, monthlyPriceOf, stackRows } from '../../models/stacks/project_stack';
import type { Resolvers } from '../types';

const models: StackModels = {
  currency: prices.currency,
  rows: stackRows,
  monthlyPrice: monthlyPriceOf,
  lock: lockStack,
  requiresApproval,
  pausesKey: wouldPauseKey,
};

/** Bound to the operations that they run by `nested` below. */
const unbound = (): never => {
  throw problem('internal_error');
};

export const resolvers: Resolvers = {
  Query: {
    exportStack: unbound,
  },
  Mutation: {
    importStack: async (_, { input }, ctx) => importStack(input, await importCatalog(ctx)),
    planStack: unbound,
    applyStack: unbound,
  },
};

export const nested: Record<string, NestedOperation> = stackOperations(models);
