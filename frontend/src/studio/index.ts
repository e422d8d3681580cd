/** The studio's page; replaced by its own part. */
export function mountStudio(element: HTMLElement): void {
  element.textContent = "The studio is not part of this bundle yet.";
}
