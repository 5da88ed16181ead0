import type { Prepare } from '../index';
import { Application } from '../../models/applications/application';
import { childrenOf } from '../../models/applications/application/children';
import { shownUrl } from '../../models/applications/application/url';
import { certificateOf } from '../../models/base/default_certificate';
import { loadOne } from '../../models/base/load';
import { page } from '../../models/base/page';
import { Preview } from '../../models/previews/preview';
import type { ProbedHead } from '../../models/previews/preview/head';
import { probeNew, probePresent } from '../../models/previews/preview/probe';
import type { CreatePreviewInput } from '../../schema/types';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    listPreviews: async (_, { id, ...args }, ctx) => {
      await Application.get(ctx, id);
      return page(Preview, ctx, args, { application_id: id });
    },
    getPreview: (_, { id, preview_id }, ctx) => Preview.get(ctx, preview_id, { application_id: id }),
  },
  Mutation: {
    createPreview: async (_, { id, input }, ctx) =>
      Preview.create(ctx, await Application.ofChild(ctx, id), input, ctx.probed as ProbedHead | null),
    deletePreview: async (_, { id, preview_id }, ctx) => {
      await (await Preview.forUpdate(ctx, preview_id, { application_id: id })).remove(ctx);
      return true;
    },
    redeployPreview: async (_, { id, preview_id }, ctx) => {
      const application = await Application.ofChild(ctx, id);
      return (await Preview.forUpdate(ctx, preview_id, { application_id: id })).redeploy(
        ctx,
        application,
        ctx.probed as ProbedHead | null,
      );
    },
  },
  Application: {
    previews: (application, { limit }, ctx) => childrenOf(Preview, ctx, application, limit),
  },
  Preview: {
    url: (preview, _, ctx) => shownUrl(ctx, preview.hostname),
    certificate: (preview, _, ctx) => certificateOf(ctx, preview.hostname),
    application: (preview, _, ctx, info) => loadOne(Application, ctx, preview.project_id, preview.application_id, info),
  },
};

export const prepare: Record<string, Prepare> = {
  createPreview: ({ id, input }, ctx) => probeNew(ctx, id as string, input as CreatePreviewInput),
  redeployPreview: ({ id, preview_id }, ctx) => probePresent(ctx, id as string, preview_id as string),
};
