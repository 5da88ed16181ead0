import { page } from '../../models/base/page';
import { RobotAccount } from '../../models/registries/robot_account';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listRobotAccounts: (_, args, ctx) => page(RobotAccount, ctx, args),
    getRobotAccount: (_, { id }, ctx) => RobotAccount.get(ctx, id),
  },
  Mutation: {
    createRobotAccount: (_, { input }, ctx) => RobotAccount.create(ctx, input),
    deleteRobotAccount: async (_, { id }, ctx) => {
      await (await RobotAccount.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
  },
  RobotAccount: {
    status: (robot) => robot.accountStatus,
  },
};
