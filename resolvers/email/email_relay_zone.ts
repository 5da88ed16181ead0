import { page } from '../../models/base/page';
import { EmailRelayZone } from '../../models/email/email_relay_zone';
import { metricsOfEmailRelayZone } from '../../models/email/email_relay_zone/metrics';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listEmailRelayZones: (_, args, ctx) => page(EmailRelayZone, ctx, args),
    getEmailRelayZone: (_, { id }, ctx) => EmailRelayZone.get(ctx, id),
    getEmailRelayZoneMetrics: (_, args, ctx) => metricsOfEmailRelayZone(ctx, args),
  },
  Mutation: {
    createEmailRelayZone: (_, { input }, ctx) => EmailRelayZone.create(ctx, input),
    updateEmailRelayZone: async (_, { id, input }, ctx) => (await EmailRelayZone.forUpdate(ctx, id)).change(ctx, input),
    deleteEmailRelayZone: async (_, { id }, ctx) => {
      await (await EmailRelayZone.forUpdate(ctx, id)).destroy(ctx);
      return true;
    },
    rotateEmailRelayCredentials: async (_, { id }, ctx) => (await EmailRelayZone.forUpdate(ctx, id)).rotate(ctx),
  },
  EmailRelayZone: {
    smtp_host: (_zone, _, ctx) => ctx.config.smtpHost,
    smtp_ports: (_zone, _, ctx) => ctx.config.smtpPorts.map(({ port }) => port),
    smtp_username: (zone) => zone.id,
    smtp_password: (zone) => zone.shown ?? null,
  },
};
