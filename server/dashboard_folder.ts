// Where the built dashboard lies.
import { existsSync } from 'node:fs';
import path from 'node:path';

/** The folder of the built files: beside the sources, also where the compiled program runs. */
export function dashboardFolder(): string {
  let folder = __dirname;
  while (!existsSync(path.join(folder, 'templates')) && folder !== path.dirname(folder)) folder = path.dirname(folder);
  return path.join(folder, 'clients/dashboard/dist');
}

export function isDashboardBuilt(): boolean {
  return existsSync(path.join(dashboardFolder(), 'index.html'));
}
