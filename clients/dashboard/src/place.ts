// Where the person is: the project of the page, and the sections of the thing that it shows. Pages say it to the frame.
import { signal } from '@preact/signals';
import { address } from './router';
import { projects } from './session';

export interface Tab {
  href: string;
  label: string;
}

/** What a page is about, beside its project. */
export interface Subject {
  /** Such as the name of an application. */
  name: string;
  /** Pages of it; the first one is its overview. */
  sections: readonly Tab[];
}

/** The project of the page that was shown last. */
export const pageProject = signal<string | undefined>(undefined);
export const subject = signal<Subject | null>(null);

/** Paths of what belongs to a project. */
const THINGS = /^\/(projects|applications|databases|buckets|dns|email_domains|observers)\//;

/** The project that the address names; undefined outside of projects, and until the page knows it. */
export function shownProject(): string | undefined {
  const { path } = address.value;
  return /^\/projects\/(\w+)/.exec(path)?.[1] ?? (THINGS.test(path) ? pageProject.value : undefined);
}

/** Whether the page belongs to no project, or to a thing that is not there. */
export function isOutside(): boolean {
  const { path } = address.value;
  const isMissing = /^\/(applications|databases)\//.test(path) && subject.value?.sections.length === 0;
  return !THINGS.test(path) || (isMissing && !shownProject());
}

/** The project of the page, else the one before it, else the first one. */
export function currentProject(): string {
  return shownProject() ?? pageProject.value ?? projects.value[0]?.id ?? '';
}

/** Whether a page is the one of a link or one below it. The first of some is above all others. */
export function isWithin(path: string, href: string, first?: string): boolean {
  return path === href || (href !== first && path.startsWith(`${href}/`));
}
