// Applications: a deleted one is purged once nothing refers to it. Its domains are torn down as rows of their own and
// hold it until then; its variables and processes go with it.
import { gone, settled, type Job } from './job';
import { Application } from '../models/application';

export const job: Job = {
  table: Application.table,
  states: Application.states,
  reconcile: async (row) => (row.deleted_at ? gone : settled()),
};
