// What scrolls takes the focus, so that the keys scroll it too; the theme makes some of it late.
const scrolls = ".md-typeset__scrollwrap, pre > code";
const focusable = () => document.querySelectorAll(scrolls).forEach(e => { e.tabIndex = 0; });
new MutationObserver(focusable).observe(document.body, {childList: true, subtree: true});
focusable();
