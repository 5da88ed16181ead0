import type { Context } from '../../core/context';
import {
  loadInstallationState,
  planSetup,
  rollBackInstallation,
  setupProgress,
  startSetup,
  upgradeInstallation,
} from '../../models/domains/installation_state';
import { requireOperator } from '../../models/identity/operator';
import { requirePassword } from '../../models/identity/user';
import type { Prepare } from '../../resolvers';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    installationState: (_, __, ctx) => loadInstallationState(ctx),
    setupPlan: (_, { input }, ctx) => planSetup(ctx, input),
    setupProgress: (_, { token }, ctx) => setupProgress(ctx, token),
  },
  Mutation: {
    upgradeInstallation: (_, { version }, ctx) => upgradeInstallation(ctx, version),
    rollBackInstallation: (_, { version }, ctx) => rollBackInstallation(ctx, version),
    setUpInstallation: (_, { input }, ctx) => startSetup(ctx, input),
  },
};

/** A stolen session must not replace programs: the password is asked for again, of operators alone. */
const requireOperatorsPassword = async (args: Record<string, unknown>, ctx: Context): Promise<void> => {
  await requireOperator(ctx);
  await requirePassword(ctx, args.password as string);
};

export const prepare: Record<string, Prepare> = {
  upgradeInstallation: requireOperatorsPassword,
  rollBackInstallation: requireOperatorsPassword,
  setUpInstallation: requireOperatorsPassword,
};
