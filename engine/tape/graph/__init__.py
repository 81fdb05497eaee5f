"""A tape as a picture: listed as data, folded where it repeats, written as dot.

listing   what a tape recorded, as plain data that outlives its arrays
names     what the user calls the arrays
folding   repeated sequences, and what is too long to be drawn
model     the picture as data: nodes, edges, clusters
build     listing -> model
dot       model -> text
"""
