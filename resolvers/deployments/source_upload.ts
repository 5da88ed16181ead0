import { Application } from '../../models/applications/application';
import { loadOne } from '../../models/base/load';
import { SourceUpload } from '../../models/deployments/source_upload';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listSourceUploads: (_, args, ctx) => SourceUpload.list(ctx, args),
    getSourceUpload: async (_, { id, upload_id }, ctx) => {
      await Application.get(ctx, id);
      return SourceUpload.get(ctx, upload_id, { application_id: id });
    },
  },
  Mutation: {
    createSourceUpload: (_, { id, input }, ctx) => SourceUpload.create(ctx, id, input),
  },
  SourceUpload: {
    method: () => 'PUT',
    application: (upload, _, ctx, info) => loadOne(Application, ctx, upload.project_id, upload.application_id, info),
  },
};
