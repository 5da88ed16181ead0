import {
  chooseAlarmNotifiers,
  loadInstallationAlarms,
} from '../../models/observers/installation_alarm/alarm_notifiers';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    installationAlarms: (_, __, ctx) => loadInstallationAlarms(ctx),
  },
  Mutation: {
    chooseAlarmNotifiers: (_, { ids }, ctx) => chooseAlarmNotifiers(ctx, ids),
  },
};
