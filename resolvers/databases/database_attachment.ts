import { createdBack, deletedBack, type Revert } from '../../contract/revert';
import { Application } from '../../models/applications/application';
import { childrenOf } from '../../models/applications/application/children';
import { DatabaseAttachment } from '../../models/databases/database_attachment';
import { variableNames } from '../../models/databases/database_attachment/variables';
import { loadOne } from '../../models/base/load';
import { ManagedDatabase } from '../../models/databases/database';
import { page } from '../../models/base/page';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listDatabaseAttachments: async (_, { id, ...args }, ctx) => {
      await ManagedDatabase.get(ctx, id);
      return page(DatabaseAttachment, ctx, args, { database_id: id });
    },
    listApplicationAttachments: async (_, { id, ...args }, ctx) => {
      await Application.get(ctx, id);
      return page(DatabaseAttachment, ctx, args, { application_id: id });
    },
    getDatabaseAttachment: async (_, { id, attachment_id }, ctx) => {
      await ManagedDatabase.get(ctx, id);
      return DatabaseAttachment.get(ctx, attachment_id, { database_id: id });
    },
  },
  Mutation: {
    createDatabaseAttachment: async (_, { id, input }, ctx) =>
      DatabaseAttachment.create(ctx, await ManagedDatabase.ofChild(ctx, id), input),
    deleteDatabaseAttachment: async (_, { id, attachment_id }, ctx) => {
      await ManagedDatabase.ofChild(ctx, id);
      await (await DatabaseAttachment.forUpdate(ctx, attachment_id, { database_id: id })).destroy(ctx);
      return true;
    },
  },
  Application: {
    attachments: (application, { limit }, ctx) => childrenOf(DatabaseAttachment, ctx, application, limit),
  },
  DatabaseAttachment: {
    variables: async ({ project_id, database_id, env_prefix }, _, ctx) => {
      const database = await loadOne(ManagedDatabase, ctx, project_id, database_id);
      return variableNames(env_prefix, database?.engine ?? '');
    },
    database: (attachment, _, ctx, info) =>
      loadOne(ManagedDatabase, ctx, attachment.project_id, attachment.database_id, info),
    application: (attachment, _, ctx, info) =>
      loadOne(Application, ctx, attachment.project_id, attachment.application_id, info),
  },
};

const CHILD = {
  kind: 'database_attachment',
  parent: 'database',
  create: 'createDatabaseAttachment',
  delete: 'deleteDatabaseAttachment',
  id: 'attachment_id',
  revives: true,
} as const;

export const revert: Record<string, Revert> = {
  createDatabaseAttachment: createdBack(CHILD),
  deleteDatabaseAttachment: deletedBack(CHILD),
};
