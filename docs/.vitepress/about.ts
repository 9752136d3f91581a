/** What a page says of itself: its description, else the first sentence below its heading. */
export function aboutOf(markdown: string): string {
  const description = /^description: (?:"(.*)"|(.*))$/m.exec(markdown);
  const lead = /^# .*\n+(?![#|>!<-]|```)([^\n]+(?:\n[^\n]+)*)/m.exec(markdown)?.[1] ?? '';
  const said = description?.[1] ?? description?.[2] ?? lead.replaceAll('\n', ' ');
  return said.split(/(?<=\.)\s/)[0] ?? '';
}

/** The same without links, code and emphasis. */
export function plain(markdown: string): string {
  return markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
}
