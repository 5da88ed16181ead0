// Commands of `svc` as a person types them: with names, and with no flag that it does without.
import { projectOf, projects } from '../session';

/** As one word of a shell. */
export function quote(text: string): string {
  return /^[\w@%+=:,./…-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** ` --project Shop`: nothing where there is one project alone, which `svc` takes. */
export function projectFlag(projectId: string | undefined): string {
  const own = projectOf(projectId);
  if (!own) return projectId ? ` --project ${projectId}` : '';
  if (projects.value.length === 1) return '';
  const isKnown = projects.value.filter(({ name }) => name === own.name).length === 1 && !own.name.startsWith('-');
  return ` --project ${quote(isKnown ? own.name : own.id)}`;
}

/** ` --app shop`, with its project. */
export function appFlags({ name, project_id }: { name: string; project_id: string }): string {
  return ` --app ${quote(name)}${projectFlag(project_id)}`;
}
