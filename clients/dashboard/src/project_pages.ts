// The pages of a project, in their groups: the side bar shows them, and the palette finds them.
import type { IconName } from './parts/icon';

export interface ProjectPage {
  href: string;
  label: string;
  icon: IconName;
  /** Paths of single things of the page, such as `/databases/…`. */
  things?: string;
}

interface PageGroup {
  title: string;
  pages: readonly ProjectPage[];
}

export function projectGroups(id: string): PageGroup[] {
  const to = (path: string): string => `/projects/${id}${path}`;
  return [
    { title: '', pages: [{ href: to(''), label: 'Overview', icon: 'home', things: '/applications/' }] },
    {
      title: 'Data',
      pages: [
        { href: to('/databases'), label: 'Databases', icon: 'database', things: '/databases/' },
        { href: to('/volumes'), label: 'Volumes', icon: 'volume' },
        { href: to('/buckets'), label: 'Buckets', icon: 'bucket', things: '/buckets/' },
      ],
    },
    {
      title: 'Names and mail',
      pages: [
        { href: to('/dns'), label: 'DNS', icon: 'dns', things: '/dns/' },
        { href: to('/resources/cdn_zones'), label: 'CDN', icon: 'cdn' },
        { href: to('/email_domains'), label: 'Email domains', icon: 'email', things: '/email_domains/' },
      ],
    },
    {
      title: 'Watch',
      pages: [
        { href: to('/observers'), label: 'Observers', icon: 'observer', things: '/observers/' },
        { href: to('/activity'), label: 'Activity', icon: 'activity' },
        { href: to('/usage'), label: 'Usage', icon: 'usage' },
      ],
    },
    {
      title: 'Project',
      pages: [
        { href: to('/members'), label: 'Members', icon: 'members' },
        { href: to('/keys'), label: 'Keys', icon: 'keys' },
        { href: to('/approvals'), label: 'Approvals', icon: 'well' },
        { href: to('/file'), label: 'As a file', icon: 'docs' },
        { href: to('/bin'), label: 'Bin', icon: 'bin' },
        { href: to('/resources/git_integrations'), label: 'Git', icon: 'git' },
        { href: to('/resources'), label: 'All resources', icon: 'resources' },
      ],
    },
  ];
}
