/* tree.c: ordered sets that are never changed: a change copies the path to what it changes and
 * shares the rest.
 *
 * An edition is four of them. Trees are balanced by weight: no side has more than three times the
 * other's. Nodes are counted; a tree is the pointer to its root, NULL the empty one. What makes
 * nodes consumes the trees it is given and hands out a new one; when memory is refused that is
 * `tree_refused`, which everything passes on. */
#include "catalog/catalog_int.h"

static struct tree refused_tree = {.refs = 1};
struct tree *const tree_refused = &refused_tree;

struct tree *tree_retain(struct tree *tree) {
    if (tree && tree != tree_refused) {
        atomic_fetch_add_explicit(&tree->refs, 1, memory_order_relaxed);
    }
    return tree;
}

void tree_release(struct tree *tree) {
    if (!tree || tree == tree_refused ||
        atomic_fetch_sub_explicit(&tree->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    tree_release(tree->left);
    tree_release(tree->right);
    version_release(tree->item.entry.version);
    object_release(tree->item.entry.object);
    mem_free(tree->mem, tree, (i64)sizeof *tree);
}

struct tree_key tree_key_of(enum tree_order order, const struct tree_item *item) {
    const struct object *object = item->entry.object;
    struct tree_key key = {.order = order};
    switch (order) {
    case TREE_OID:
        key.number = object->oid;
        break;
    case TREE_NAME:
        key.number = object->schema;
        key.name = sv_from(item->used ? object->table->keys[item->used - 1].name : object->name);
        break;
    case TREE_TABLE:
        key.number = object->table->id;
        break;
    case TREE_USE:
        key.number = (u64)item->used << 32 | object->oid;
        break;
    }
    return key;
}

static int compare(const struct tree_key *a, const struct tree *node) {
    struct tree_key b = tree_key_of(a->order, &node->item);
    if (a->number != b.number) {
        return a->number < b.number ? -1 : 1;
    }
    return a->order == TREE_NAME ? sv_cmp(a->name, b.name) : 0;
}

static i64 weight(const struct tree *tree) {
    return (tree ? tree->size : 0) + 1;
}

static struct tree *node(struct memory *mem, struct tree *left, struct tree *right,
                         const struct tree_item *item) {
    bool refused = left == tree_refused || right == tree_refused;
    struct tree *made = refused ? NULL : mem_alloc(mem, (i64)sizeof *made);
    if (!made) {
        tree_release(left);
        tree_release(right);
        return tree_refused;
    }
    memset(made, 0, sizeof *made);
    atomic_init(&made->refs, 1);
    made->mem = mem;
    made->size = weight(left) + weight(right) - 1;
    made->left = left;
    made->right = right;
    made->item = *item;
    object_retain(item->entry.object);
    if (item->entry.version) {
        version_retain(item->entry.version);
    }
    return made;
}

static struct tree *lean_left(struct memory *mem, struct tree *left, struct tree *right,
                              const struct tree_item *item) {
    struct tree *inner = right->left, *outer = tree_retain(right->right);
    struct tree *made;
    if (weight(inner) < 2 * weight(outer)) {
        made = node(mem, node(mem, left, tree_retain(inner), item), outer, &right->item);
    } else {
        struct tree *near = node(mem, left, tree_retain(inner->left), item);
        struct tree *far = node(mem, tree_retain(inner->right), outer, &right->item);
        made = node(mem, near, far, &inner->item);
    }
    tree_release(right);
    return made;
}

static struct tree *lean_right(struct memory *mem, struct tree *left, struct tree *right,
                               const struct tree_item *item) {
    struct tree *inner = left->right, *outer = tree_retain(left->left);
    struct tree *made;
    if (weight(inner) < 2 * weight(outer)) {
        made = node(mem, outer, node(mem, tree_retain(inner), right, item), &left->item);
    } else {
        struct tree *near = node(mem, tree_retain(inner->right), right, item);
        struct tree *far = node(mem, outer, tree_retain(inner->left), &left->item);
        made = node(mem, far, near, &inner->item);
    }
    tree_release(left);
    return made;
}

/* A node over two trees of which one may have gained or lost one item. */
static struct tree *balanced(struct memory *mem, struct tree *left, struct tree *right,
                             const struct tree_item *item) {
    i64 l = weight(left), r = weight(right);
    if (left == tree_refused || right == tree_refused || l + r <= 3 || (l <= 3 * r && r <= 3 * l)) {
        return node(mem, left, right, item);
    }
    struct tree *made =
        r > l ? lean_left(mem, left, right, item) : lean_right(mem, left, right, item);
    ASSERT(made == tree_refused || weight(made->left) + weight(made->right) <= 3 ||
           (weight(made->left) <= 3 * weight(made->right) &&
            weight(made->right) <= 3 * weight(made->left)));
    return made;
}

static struct tree *put(struct memory *mem, const struct tree *tree, const struct tree_key *key,
                        const struct tree_item *item) {
    if (!tree) {
        return node(mem, NULL, NULL, item);
    }
    int order = compare(key, tree);
    if (order == 0) {
        return node(mem, tree_retain(tree->left), tree_retain(tree->right), item);
    }
    return order < 0 ? balanced(mem, put(mem, tree->left, key, item), tree_retain(tree->right),
                                &tree->item)
                     : balanced(mem, tree_retain(tree->left), put(mem, tree->right, key, item),
                                &tree->item);
}

static struct tree *without_first(struct memory *mem, const struct tree *tree) {
    return tree->left ? balanced(mem, without_first(mem, tree->left), tree_retain(tree->right),
                                 &tree->item)
                      : tree_retain(tree->right);
}

static struct tree *joined(struct memory *mem, struct tree *left, struct tree *right) {
    if (!left || !right) {
        return tree_retain(left ? left : right);
    }
    const struct tree *first = right;
    while (first->left) {
        first = first->left;
    }
    return balanced(mem, tree_retain(left), without_first(mem, right), &first->item);
}

static struct tree *removed(struct memory *mem, struct tree *tree, const struct tree_key *key) {
    if (!tree) {
        return NULL;
    }
    int order = compare(key, tree);
    if (order == 0) {
        return joined(mem, tree->left, tree->right);
    }
    return order < 0
               ? balanced(mem, removed(mem, tree->left, key), tree_retain(tree->right), &tree->item)
               : balanced(mem, tree_retain(tree->left), removed(mem, tree->right, key),
                          &tree->item);
}

void tree_put(struct memory *mem, struct tree **io_tree, enum tree_order order,
              const struct tree_item *item) {
    struct tree_key key = tree_key_of(order, item);
    struct tree *old = *io_tree;
    if (old != tree_refused) {
        *io_tree = put(mem, old, &key, item);
        tree_release(old);
    }
}

void tree_remove(struct memory *mem, struct tree **io_tree, const struct tree_key *key) {
    struct tree *old = *io_tree;
    if (old != tree_refused && tree_find(old, key)) {
        *io_tree = removed(mem, old, key);
        tree_release(old);
    }
}

const struct tree *tree_find(const struct tree *tree, const struct tree_key *key) {
    while (tree && tree != tree_refused) {
        int order = compare(key, tree);
        if (order == 0) {
            return tree;
        }
        tree = order < 0 ? tree->left : tree->right;
    }
    return NULL;
}

/* walks: the nodes on the stack come next, each followed by its right side */

static void descend(struct edition_walk *walk, const struct tree *tree) {
    for (; tree; tree = tree->left) {
        CHECK(walk->depth < TREE_DEPTH);
        walk->stack[walk->depth++] = tree;
    }
}

void tree_walk(struct edition_walk *walk, const struct tree *tree, const struct tree_key *from) {
    walk->depth = 0;
    if (!from) {
        descend(walk, tree);
        return;
    }
    while (tree) {
        int order = compare(from, tree);
        if (order <= 0) {
            CHECK(walk->depth < TREE_DEPTH);
            walk->stack[walk->depth++] = tree;
        }
        tree = order <= 0 ? tree->left : tree->right;
    }
}

const struct tree_item *tree_next(struct edition_walk *walk) {
    if (walk->depth == 0) {
        return NULL;
    }
    const struct tree *tree = walk->stack[--walk->depth];
    descend(walk, tree->right);
    return &tree->item;
}

/* Differences. Both trees are taken apart from the left: what comes next is a whole tree or, once
 * that is taken apart, its item. A tree that both have is passed over. */

static void push_part(struct tree_parts *parts, const struct tree *tree, bool whole) {
    if (tree) {
        CHECK(parts->depth < (i32)COUNT_OF(parts->stack));
        parts->stack[parts->depth] = tree;
        parts->whole[parts->depth++] = whole;
    }
}

static const struct tree *part_at(const struct tree_parts *parts, i64 *out_size) {
    const struct tree *tree = parts->depth ? parts->stack[parts->depth - 1] : NULL;
    *out_size = tree && parts->whole[parts->depth - 1] ? tree->size : 0;
    return tree;
}

static void take_apart(struct tree_parts *parts) {
    const struct tree *tree = parts->stack[--parts->depth];
    push_part(parts, tree->right, true);
    push_part(parts, tree, false);
    push_part(parts, tree->left, true);
}

void tree_diff(struct edition_diff *diff, const struct tree *from, const struct tree *to) {
    diff->from.depth = diff->to.depth = 0;
    push_part(&diff->from, from, true);
    push_part(&diff->to, to, true);
}

bool edition_diff_step(struct edition_diff *diff) {
    for (;;) {
        i64 size, other_size;
        const struct tree *a = part_at(&diff->from, &size), *b = part_at(&diff->to, &other_size);
        if (!a && !b) {
            return false;
        }
        if (a == b && size == other_size) {
            diff->from.depth--;
            diff->to.depth--;
        } else if (size && size >= other_size) {
            take_apart(&diff->from);
        } else if (other_size) {
            take_apart(&diff->to);
        } else {
            struct tree_key key = a ? tree_key_of(TREE_OID, &a->item) : (struct tree_key){0};
            int order = !a ? 1 : !b ? -1 : compare(&key, b);
            diff->before = order <= 0 ? &a->item.entry : NULL;
            diff->after = order >= 0 ? &b->item.entry : NULL;
            diff->from.depth -= order <= 0;
            diff->to.depth -= order >= 0;
            if (!diff->before || !diff->after || diff->before->object != diff->after->object ||
                diff->before->version != diff->after->version) {
                return true;
            }
        }
    }
}
